#pragma once
// What `x[i]` yields: a snapshot of the element, read at once; assignable only as a temporary.
#include "quern/values/item.h"

namespace quern {
namespace detail {
template <class U>
void refuse_snapshot() {
  static_assert(never<U>,
                "quern: this names a snapshot of an element, so assigning to it would not reach "
                "memory; write `x[i] = v`, or `Var v = x[i];` for a copy to change");
}
template <class T>
[[gnu::cold, gnu::noinline]] void store_all(const Ids<T>& places, const Ids<T>& v, Loc loc) {
  for (int k = 0; k < count_of<T>; k++) store(places.v[k], v.v[k], loc);
}
/// Scalar by scalar: each is indivisible. Yields the old ones.
template <class T>
[[gnu::cold, gnu::noinline]] Ids<T> atomic_all(Atomic op, const Ids<T>& places, const Ids<T>& v,
                                               Loc loc) {
  Ids<T> old;
  for (int k = 0; k < count_of<T>; k++) old.v[k] = atomic(op, places.v[k], &v.v[k], 1, loc);
  return old;
}
template <class U>
void refuse_plain_update() {
  static_assert(never<U>,
                "quern: x[i] op= v is not atomic on storage for this operator; write x[i] = x[i] "
                "op v");
}
}  // namespace detail

#define QUERN_UPDATE(symbol, op, numbers, integers)                               \
  void operator symbol(Arg<T> v_)&& {                                             \
    static_assert(detail::Compound<T, numbers, integers>::ok);                    \
    detail::atomic_all(detail::Atomic::op, this->quern_places(), v_.ids, v_.loc); \
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
class Elem : public detail::Ops<T>, public detail::Parts<Elem, T> {
  using Base = detail::Parts<quern::Elem, T>;

 public:
  explicit Elem(const detail::Ids<T>& read_) : Base(read_) {}
  Elem(const Elem&) = default;
  detail::Assigned<T> operator=(Arg<T> v_) && {
    detail::store_all(quern_places(), v_.ids, v_.loc);
    return detail::Assigned<T>(v_.ids);
  }
  void operator-=(Arg<T> v_) && {
    static_assert(detail::Compound<T, true, false>::ok);
    for (detail::Id& id : v_.ids.v) id = detail::unary(detail::Op::neg, id, v_.loc);
    detail::atomic_all(detail::Atomic::add, quern_places(), v_.ids, v_.loc);
  }
  QUERN_ELEMENT

  /// The reads; they also name the places.
  detail::Ids<T> quern_places() const { return detail::leaves<quern::Elem, T>(*this); }
  detail::Ids<T> quern_ids(Loc) const& { return detail::named(quern_places()); }
  detail::Ids<T> quern_ids(Loc) && { return quern_places(); }
};
#undef QUERN_ELEMENT
#undef QUERN_SNAPSHOT
#undef QUERN_NO_UPDATE
#undef QUERN_UPDATE

}  // namespace quern
