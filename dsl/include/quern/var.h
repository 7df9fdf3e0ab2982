#pragma once
// Variables: mutable locals with C++'s value semantics (a copy, a move too, records a copy).
#include "quern/val.h"

namespace quern {
namespace detail {

/// Is `a op= b` an operation on T at all?
template <class T, bool Numbers, bool Integers>
struct Compound {
  using S = scalar_t<T>;
  static_assert(!Numbers || !std::is_same_v<S, bool>, "quern: arithmetic does not change a bool");
  static_assert(!Integers || std::is_integral_v<S>,
                "quern: no such operation on these operand types: it takes integers");
  static constexpr bool ok = true;
};

template <class T>
void refuse_captured_copy() {
  static_assert(never<T>,
                "quern: this variable was captured by copy; capture with [&] to assign to it");
}

}  // namespace detail

#define QUERN_COMPOUND(symbol, op, numbers, integers)          \
  Var& operator symbol(Arg<T> v) {                             \
    static_assert(detail::Compound<T, numbers, integers>::ok); \
    change(detail::Op::op, v);                                 \
    return *this;                                              \
  }
#define QUERN_VARIABLE                                                 \
  Var& operator=(const Var&)                                           \
    requires(sizeof(T) == 0);                                          \
  void operator=(Arg<T>) const { detail::refuse_captured_copy<T>(); }  \
  void operator+=(Arg<T>) const { detail::refuse_captured_copy<T>(); } \
  void operator-=(Arg<T>) const { detail::refuse_captured_copy<T>(); } \
  QUERN_COMPOUND(+=, add, true, false)                                 \
  QUERN_COMPOUND(-=, sub, true, false)                                 \
  QUERN_COMPOUND(*=, mul, true, false)                                 \
  QUERN_COMPOUND(/=, div, true, false)                                 \
  QUERN_COMPOUND(%=, rem, true, true)                                  \
  QUERN_COMPOUND(&=, bit_and, false, true)                             \
  QUERN_COMPOUND(|=, bit_or, false, true)                              \
  QUERN_COMPOUND(^=, bit_xor, false, true)                             \
  QUERN_COMPOUND(<<=, shl, true, true)                                 \
  QUERN_COMPOUND(>>=, shr, true, true)

template <class T>
class Var : public detail::Ops<T> {
  static_assert(detail::DeviceScalar<T>, "quern: not a type a device variable can have");

 public:
  /// Zero.
  explicit Var(Loc l = Loc::here()) : Var(T{}, l) {}
  template <detail::Operand U>
    requires(!std::is_same_v<U, Var>)
  Var(const U& u, Loc l = Loc::here()) : slot_(detail::slot(detail::converted<T>(u, l).v[0], l)) {}
  Var(const Var& other, Loc l = Loc::here()) : slot_(detail::slot(other.ids(l).v[0], l)) {}
  Var& operator=(Arg<T> v) {
    detail::put(slot_, v.id(), v.loc);
    return *this;
  }
  QUERN_VARIABLE
  Var& operator++() { return *this += Arg<T>(1, Loc{}); }
  Var& operator--() { return *this -= Arg<T>(1, Loc{}); }
  Val<T> operator++(int) {
    Val<T> old = *this;
    ++*this;
    return old;
  }
  Val<T> operator--(int) {
    Val<T> old = *this;
    --*this;
    return old;
  }

  detail::Ids<T> ids(Loc l) const { return {{detail::get(slot_, l)}}; }
  detail::Id slot() const { return slot_; }

 private:
  void change(detail::Op op, const Arg<T>& v) { detail::update(op, slot_, v.id(), v.loc); }
  detail::Id slot_;
};

template <class S, int N>
class Var<Vec<S, N>> : public detail::Ops<Vec<S, N>>, public detail::Components<Var, Vec<S, N>> {
  using T = Vec<S, N>;
  using Base = detail::Components<quern::Var, T>;

 public:
  explicit Var(Loc l = Loc::here()) : Var(T{}, l) {}
  template <detail::Operand U>
    requires(!std::is_same_v<U, Var>)
  Var(const U& u, Loc l = Loc::here()) : Var(detail::converted<T>(u, l), l) {}
  Var(const Var& other, Loc l = Loc::here()) : Var(other.ids(l), l) {}
  Var& operator=(Arg<T> v) {
    for (int k = 0; k < N; k++) detail::put(part(k), v.ids.v[k], v.loc);
    return *this;
  }
  QUERN_VARIABLE

  detail::Ids<T> ids(Loc l) const {
    detail::Ids<T> out;
    for (int k = 0; k < N; k++) out.v[k] = detail::get(part(k), l);
    return out;
  }

 private:
  Var(detail::Ids<T> init, Loc l)
      : Base([&](int k) { return Var<S>(Val<S>(detail::Ids<S>{{init.v[k]}}), l); }) {}
  detail::Id part(int k) const {
    if constexpr (N > 3) {
      if (k == 3) return this->w.slot();
    }
    if constexpr (N > 2) {
      if (k == 2) return this->z.slot();
    }
    return k == 0 ? this->x.slot() : this->y.slot();
  }
  void change(detail::Op op, const Arg<T>& v) {
    for (int k = 0; k < N; k++) detail::update(op, part(k), v.ids.v[k], v.loc);
  }
};
#undef QUERN_VARIABLE
#undef QUERN_COMPOUND

template <class T>
class Var<Val<T>> {
  static_assert(detail::never<T>,
                "quern: Var takes the host's type: Var<float>, Var<vec3>, not Var<F32>, Var<Vec3>");

 public:
  template <class U>
  Var(const U&) {}
};
template <detail::Device U>
Var(const U&) -> Var<detail::elem_t<U>>;
template <detail::Host U>
Var(const U&) -> Var<U>;

}  // namespace quern
