#pragma once
// What `x[i]` yields: a snapshot of the element, read at once; assignable only as a temporary.
#include "quern/var.h"

namespace quern {
namespace detail {
template <class U>
void refuse_snapshot() {
  static_assert(never<U>,
                "quern: this names a snapshot of an element, so assigning to it would not reach "
                "memory; write `x[i] = v`, or `Var v = x[i];` for a copy to change");
}
template <class U>
void refuse_plain_update() {
  static_assert(never<U>,
                "quern: x[i] op= v is not atomic on storage for this operator; write x[i] = x[i] "
                "op v");
}
}  // namespace detail

#define QUERN_UPDATE(symbol, op, numbers, integers)            \
  void operator symbol(Arg<T> v)&& {                           \
    static_assert(detail::Compound<T, numbers, integers>::ok); \
    change(detail::Atomic::op, v);                             \
  }
#define QUERN_NO_UPDATE(symbol)       \
  template <detail::Operand U>        \
  void operator symbol(const U&)&& {  \
    detail::refuse_plain_update<U>(); \
  }
#define QUERN_SNAPSHOT(symbol)      \
  template <detail::Operand U>      \
  void operator symbol(const U&)& { \
    detail::refuse_snapshot<U>();   \
  }
#define QUERN_ELEMENT                    \
  Elem& operator=(const Elem&)           \
    requires(sizeof(T) == 0);            \
  QUERN_UPDATE(+=, add, true, false)     \
  QUERN_UPDATE(&=, bit_and, false, true) \
  QUERN_UPDATE(|=, bit_or, false, true)  \
  QUERN_UPDATE(^=, bit_xor, false, true) \
  QUERN_NO_UPDATE(*=)                    \
  QUERN_NO_UPDATE(/=)                    \
  QUERN_NO_UPDATE(%=)                    \
  QUERN_NO_UPDATE(<<=)                   \
  QUERN_NO_UPDATE(>>=)                   \
  QUERN_SNAPSHOT(=)                      \
  QUERN_SNAPSHOT(+=)                     \
  QUERN_SNAPSHOT(-=)                     \
  QUERN_SNAPSHOT(*=)                     \
  QUERN_SNAPSHOT(/=)                     \
  QUERN_SNAPSHOT(%=)                     \
  QUERN_SNAPSHOT(&=)                     \
  QUERN_SNAPSHOT(|=)                     \
  QUERN_SNAPSHOT(^=)                     \
  QUERN_SNAPSHOT(<<=)                    \
  QUERN_SNAPSHOT(>>=)

template <class T>
class Elem : public detail::Ops<T> {
 public:
  explicit Elem(detail::Ids<T> read) : read_(read.v[0]) {}
  Elem(const Elem&) = default;
  void operator=(Arg<T> v) && { detail::store(read_, v.id(), v.loc); }
  void operator-=(Arg<T> v) && {
    static_assert(detail::Compound<T, true, false>::ok);
    v.ids.v[0] = detail::unary(detail::Op::neg, v.id(), v.loc);
    change(detail::Atomic::add, v);
  }
  QUERN_ELEMENT

  detail::Ids<T> ids(Loc) const { return {{read_}}; }
  /// The read; it also names the place.
  detail::Id place() const { return read_; }

 private:
  void change(detail::Atomic op, const Arg<T>& v) {
    detail::Id id = v.id();
    detail::atomic(op, read_, &id, 1, v.loc);
  }
  detail::Id read_;
};

template <class S, int N>
class Elem<Vec<S, N>> : public detail::Ops<Vec<S, N>>, public detail::Components<Elem, Vec<S, N>> {
  using T = Vec<S, N>;
  using Base = detail::Components<quern::Elem, T>;

 public:
  explicit Elem(detail::Ids<T> read)
      : Base([&](int k) { return Elem<S>(detail::Ids<S>{{read.v[k]}}); }), read_(read) {}
  Elem(const Elem&) = default;
  void operator=(Arg<T> v) && {
    for (int k = 0; k < N; k++) detail::store(read_.v[k], v.ids.v[k], v.loc);
  }
  void operator-=(Arg<T> v) && {
    static_assert(detail::Compound<T, true, false>::ok);
    for (detail::Id& id : v.ids.v) id = detail::unary(detail::Op::neg, id, v.loc);
    change(detail::Atomic::add, v);
  }
  QUERN_ELEMENT

  detail::Ids<T> ids(Loc) const { return read_; }

 private:
  void change(detail::Atomic op, const Arg<T>& v) {
    for (int k = 0; k < N; k++) detail::atomic(op, read_.v[k], &v.ids.v[k], 1, v.loc);
  }
  detail::Ids<T> read_;
};
#undef QUERN_ELEMENT
#undef QUERN_SNAPSHOT
#undef QUERN_NO_UPDATE
#undef QUERN_UPDATE

}  // namespace quern
