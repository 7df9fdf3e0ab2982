#pragma once
// Variables: mutable locals with C++'s value semantics (a copy, a move too, records a copy).
#include "quern/values/val.h"

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

/// A structure has no arithmetic.
template <class T, bool Numbers, bool Integers>
  requires is_structure<T>
struct Compound<T, Numbers, Integers> {
  static_assert(!is_structure<T>,
                "quern: a structure or array has no arithmetic; change its members");
  static constexpr bool ok = true;
};

template <class T>
[[gnu::cold, gnu::noinline]] SlotIds<T> new_slots(Loc loc) {
  constexpr auto plan = slots_of<T>;
  SlotIds<T> out;
  for (int k = 0; k < count_of<T>; k++) {
    auto [s, element] = plan.at[k];
    if (element == 0) out.v[s] = slot(scalars_of<T>.v[k], plan.length[s], loc);
  }
  return out;
}
/// Where scalar k of a variable lies.
template <class T>
Id place_of(const SlotIds<T>& slots, int k, Loc loc) {
  constexpr auto plan = slots_of<T>;
  auto [s, element] = plan.at[k];
  if (plan.length[s] == 1) return slots.v[s];
  return item(slots.v[s], constant(Scalar::i32, int64_t(element), loc), 1, 0, loc);
}
template <class T>
[[gnu::cold, gnu::noinline]] Ids<T> get_all(const SlotIds<T>& slots, Loc loc) {
  Ids<T> out;
  for (int k = 0; k < count_of<T>; k++) out.v[k] = get(place_of<T>(slots, k, loc), loc);
  return out;
}
template <class T>
[[gnu::cold, gnu::noinline]] void put_all(const SlotIds<T>& slots, const Ids<T>& v, Loc loc) {
  for (int k = 0; k < count_of<T>; k++) put(place_of<T>(slots, k, loc), v.v[k], loc);
}
template <class T>
[[gnu::cold, gnu::noinline]] SlotIds<T> new_slots(const Ids<T>& init, Loc loc) {
  SlotIds<T> out = new_slots<T>(loc);
  put_all<T>(out, init, loc);
  return out;
}
/// Of types with arithmetic, which have a slot for each scalar.
template <class T, int N, class O>
[[gnu::cold, gnu::noinline]] void update_all(O op, const Ids<T, N>& slots, const Ids<T>& v,
                                             Loc loc) {
  for (int k = 0; k < N; k++) update(op, slots.v[k], v.v[k], loc);
}

/// What an assignment yields: the value assigned. No condition (control.h).
template <class T>
struct Assigned : Val<T> {
  explicit Assigned(const Ids<T>& ids) : Val<T>(ids) {}
};

/// The operand of ++ and --, and where it was written.
template <class T>
struct Stepped {
  Var<T>& variable;
  Loc loc;
  Stepped(Var<T>& v, Loc l = Loc::here()) : variable(v), loc(l) {}
  Arg<T> one() const { return {1, loc}; }
};

template <class T>
void refuse_captured_copy() {
  static_assert(never<T>,
                "quern: this variable was captured by copy; capture with [&] to assign to it");
}

}  // namespace detail

#define QUERN_COMPOUND(symbol, op, numbers, integers)                        \
  Var& operator symbol(Arg<T> v_) {                                          \
    static_assert(detail::Compound<T, numbers, integers>::ok);               \
    detail::update_all(detail::Op::op, this->quern_slots(), v_.ids, v_.loc); \
    return *this;                                                            \
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
class Var : public detail::Ops<T>, public detail::Parts<Var, T> {
  static_assert(detail::Traits<T>::supported, "quern: not a type a device variable can have");
  using Base = detail::Parts<quern::Var, T>;

 public:
  /// Zero.
  explicit Var(Loc l_ = Loc::here()) : Var(detail::new_slots<T>(l_)) {}
  template <detail::Operand U>
    requires(!std::is_same_v<U, Var>)
  Var(const U& u_, Loc l_ = Loc::here())
      : Var(detail::new_slots<T>(detail::converted<T>(u_, l_), l_)) {}
  /// An array of its elements, as in `{1, 2, 3}`, or of those of a std::array.
  template <detail::Operand... A>
    requires(detail::is_array<T> && sizeof...(A) >= 1)
  Var(Arg<typename detail::ArrayElement<T>::type> first_, A&&... more_)
      : Var(detail::new_slots<T>(detail::elements<T>(first_, std::forward<A>(more_)...),
                                 first_.loc)) {}
  template <detail::StandardArray C>
    requires detail::is_array<T>
  Var(const C& c_, Loc l_ = Loc::here()) : Var(detail::own_array(c_), l_) {}
  Var(const Var& other_, Loc l_ = Loc::here())
      : Var(detail::new_slots<T>(other_.quern_ids(l_), l_)) {}
  explicit Var(const detail::SlotIds<T>& slots_) : Base(slots_) {}
  detail::Assigned<T> operator=(Arg<T> v_) {
    detail::put_all<T>(quern_slots(), v_.ids, v_.loc);
    return detail::Assigned<T>(v_.ids);
  }
  QUERN_VARIABLE
  friend Var& operator++(detail::Stepped<T> v_) { return v_.variable += v_.one(); }
  friend Var& operator--(detail::Stepped<T> v_) { return v_.variable -= v_.one(); }
  friend Val<T> operator++(detail::Stepped<T> v_, int) {
    Val<T> old_(v_.variable, v_.loc);
    v_.variable += v_.one();
    return old_;
  }
  friend Val<T> operator--(detail::Stepped<T> v_, int) {
    Val<T> old_(v_.variable, v_.loc);
    v_.variable -= v_.one();
    return old_;
  }

  detail::Ids<T> quern_ids(Loc l_) const { return detail::get_all<T>(quern_slots(), l_); }
  detail::SlotIds<T> quern_slots() const { return detail::leaves<quern::Var, T>(*this); }
};
#undef QUERN_VARIABLE
#undef QUERN_COMPOUND

namespace detail {

/// v[k] of a variable: the component's value, and assignable as a temporary.
template <class T, class S>
class Chosen : public Val<S> {
 public:
  Chosen(const Ids<T>& slots, Id index, Loc loc)
      : Val<S>(Ids<S>{{pick(slots.v, count_of<T>, true, index, loc)}}),
        slots_(slots),
        index_(index) {}
  void operator=(Arg<S> v) && { put_at(slots_.v, count_of<T>, index_, v.id(), v.loc); }
#define QUERN_CHOSEN(symbol)                                                       \
  void operator symbol##=(Arg<S> v)&& {                                            \
    Placed placed(v.loc);                                                          \
    Arg<S> changed(static_cast<const Val<S>&>(*this) symbol Val<S>(v.ids), v.loc); \
    put_at(slots_.v, count_of<T>, index_, changed.id(), v.loc);                    \
  }
  QUERN_CHOSEN(+)
  QUERN_CHOSEN(-)
  QUERN_CHOSEN(*)
  QUERN_CHOSEN(/)
#undef QUERN_CHOSEN
  template <class U>
  void operator=(const U&) & {
    static_assert(never<U>,
                  "quern: this names the value of a component, so assigning to it would not reach "
                  "the variable; write `v[k] = value`");
  }
  Chosen& operator=(const Chosen&)
    requires(sizeof(S) == 0);

 private:
  Ids<T> slots_;
  Id index_;
};
template <class S>
struct Component<Var, S> {
  template <class T>
  static Chosen<T, S> of(const Ids<T>& parts, Id index, Loc loc) {
    return {parts, index, loc};
  }
};

}  // namespace detail

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
template <detail::StandardArray C>
Var(const C&) -> Var<detail::own_array_t<C>>;

}  // namespace quern
