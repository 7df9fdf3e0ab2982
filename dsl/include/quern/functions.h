#pragma once
// Functions of values: conversions, choice, arithmetic and mathematics. Their meaning, and the
// bound of each mathematical function, stand in docs/semantics.md.
#include "quern/elem.h"

namespace quern {
namespace detail {

template <class S, class H>
consteval auto met_host() {
  if constexpr (std::is_floating_point_v<S>)
    return std::type_identity<S>{};
  else if constexpr (std::is_same_v<H, float>)
    return std::type_identity<float>{};
  else if constexpr (std::is_floating_point_v<H>)
    return std::type_identity<double>{};
  else if constexpr (std::is_same_v<S, bool> && !std::is_same_v<H, bool>)
    return std::type_identity<promoted_t<H>>{};
  else
    return std::type_identity<S>{};
}
template <class A, class B>
consteval auto met() {
  using SA = scalar_t<elem_t<A>>;
  using SB = scalar_t<elem_t<B>>;
  if constexpr (scalar_of<SA>() == scalar_of<SB>())
    return std::type_identity<canonical_t<SA>>{};
  else if constexpr (Device<A> && Host<B>)
    return met_host<SA, SB>();
  else if constexpr (Host<A> && Device<B>)
    return met_host<SB, SA>();
  else
    return std::type_identity<common_t<SA, SB>>{};
}
/// The type where two operands meet without arithmetic (min, select): no promotion of equal types.
template <class A, class B>
using meet_t = rebind_t<std::conditional_t<is_scalar<elem_t<A>>, elem_t<B>, elem_t<A>>,
                        typename decltype(met<A, B>())::type>;

template <class T, class U>
struct Meets {
  using S = scalar_t<elem_t<U>>;
  using C = scalar_t<T>;
  static_assert(!std::is_unsigned_v<C> || std::is_same_v<C, bool> || Host<U> ||
                    std::is_unsigned_v<S>,
                "quern: an integer that may be negative meets an unsigned one here; cast one side");
  static constexpr bool ok = true;
};

/// An operand in the type T it meets another at.
template <class T, Operand U>
Ids<T> meeting(const U& u, Loc loc) {
  static_assert(Meets<T, U>::ok);
  constexpr int n = count_of<elem_t<U>>;
  auto from = operand_ids<scalar_t<T>>(u, loc);
  Ids<T> out;
  for (int k = 0; k < count_of<T>; k++)
    out.v[k] = n == 1 && k > 0 ? out.v[0] : convert(from.v[n == 1 ? 0 : k], type_of<T>, loc);
  return out;
}

template <class T, bool Floats, bool Numbers = true>
struct Takes {
  using S = scalar_t<T>;
  static_assert(!Floats || std::is_floating_point_v<S>,
                "quern: this function takes floating values; write cast<float>(value)");
  static_assert(!Numbers || !std::is_same_v<S, bool>, "quern: this function takes numbers");
  static constexpr bool ok = true;
};

template <class T>
[[gnu::cold, gnu::noinline]] Val<T> map(Op op, Ids<T> a, Loc loc) {
  for (Id& id : a.v) id = unary(op, id, loc);
  return value<T>(a);
}
template <class T>
[[gnu::cold, gnu::noinline]] Val<T> map(Op op, Ids<T> a, Ids<T> b, Loc loc) {
  Ids<T> out;
  binary(op, type_of<T>, a.v, count_of<T>, b.v, count_of<T>, out.v, loc);
  return value<T>(out);
}

template <class A, class B>
concept OneDevice = Operand<A> && Operand<B> && (Device<A> || Device<B>);

}  // namespace detail

namespace lang {

/// Converts, also where it narrows: floating to integer rounds toward zero and saturates, NaN
/// becomes 0; wide to narrow truncates.
template <class S, detail::Device U>
auto cast(const U& u, Loc l = Loc::here()) {
  static_assert(detail::DeviceScalar<S>, "quern: cast<T> takes a scalar type");
  using T = detail::rebind_t<detail::elem_t<U>, S>;
  auto from = u.ids(l);
  detail::Ids<T> out;
  for (int k = 0; k < detail::count_of<T>; k++)
    out.v[k] = detail::convert(from.v[k], detail::type_of<T>, l);
  return detail::value<T>(out);
}
template <class S, detail::HostNumber U>
constexpr S cast(const U& u) {
  return S(u);
}

/// The same bits as another type of the same width.
template <class S, detail::Device U>
Val<S> bitcast(const U& u, Loc l = Loc::here()) {
  using F = detail::elem_t<U>;
  static_assert(detail::is_scalar<F> && sizeof(S) == sizeof(F) && !std::is_same_v<S, bool> &&
                    !std::is_same_v<F, bool>,
                "quern: bitcast<T> takes a number of the same width");
  return detail::value<S>(detail::bitcast(u.ids(l).v[0], detail::scalar_of<S>(), l));
}

/// `c ? a : b`, with both recorded.
template <detail::Operand A, detail::Operand B>
auto select(Arg<bool> c, const A& a, const B& b) {
  using T = detail::meet_t<A, B>;
  detail::Ids<T> x = detail::meeting<T>(a, c.loc), y = detail::meeting<T>(b, c.loc), out;
  for (int k = 0; k < detail::count_of<T>; k++)
    out.v[k] = detail::ternary(detail::Op::select, c.id(), x.v[k], y.v[k], c.loc);
  return detail::value<T>(out);
}

#define QUERN_FLOAT_FUNCTION(name, op)                  \
  template <detail::Device U>                           \
  auto name(const U& u, Loc l = Loc::here()) {          \
    using T = detail::elem_t<U>;                        \
    static_assert(detail::Takes<T, true>::ok);          \
    return detail::map<T>(detail::Op::op, u.ids(l), l); \
  }
QUERN_FLOAT_FUNCTION(sqrt, sqrt)
QUERN_FLOAT_FUNCTION(floor, floor)
QUERN_FLOAT_FUNCTION(ceil, ceil)
QUERN_FLOAT_FUNCTION(trunc, trunc)
QUERN_FLOAT_FUNCTION(round, round)  // to nearest, ties to even
QUERN_FLOAT_FUNCTION(sin, sin)
QUERN_FLOAT_FUNCTION(cos, cos)
QUERN_FLOAT_FUNCTION(exp, exp)
QUERN_FLOAT_FUNCTION(log, log)
#undef QUERN_FLOAT_FUNCTION

#define QUERN_FUNCTION_OF_TWO(name, op, floats)                      \
  template <class A, class B>                                        \
    requires detail::OneDevice<A, B>                                 \
  auto name(const A& a, const B& b, Loc l = Loc::here()) {           \
    using T = detail::meet_t<A, B>;                                  \
    static_assert(detail::Takes<T, floats>::ok);                     \
    auto x = detail::meeting<T>(a, l), y = detail::meeting<T>(b, l); \
    return detail::map<T>(detail::Op::op, x, y, l);                  \
  }
QUERN_FUNCTION_OF_TWO(min, min, false)   // b < a ? b : a
QUERN_FUNCTION_OF_TWO(max, max, false)   // a < b ? b : a
QUERN_FUNCTION_OF_TWO(fmin, fmin, true)  // skips a NaN, orders -0 < +0
QUERN_FUNCTION_OF_TWO(fmax, fmax, true)
QUERN_FUNCTION_OF_TWO(copysign, copysign, true)
QUERN_FUNCTION_OF_TWO(pow, pow, true)
QUERN_FUNCTION_OF_TWO(atan2, atan2, true)
#undef QUERN_FUNCTION_OF_TWO

template <detail::Device U>
auto abs(const U& u, Loc l = Loc::here()) {
  using T = detail::elem_t<U>;
  static_assert(detail::Takes<T, false>::ok);
  return detail::map<T>(detail::Op::abs, u.ids(l), l);
}
template <detail::Device A, detail::Operand L, detail::Operand H>
auto clamp(const A& a, const L& low, const H& high, Loc l = Loc::here()) {
  return min(max(a, low, l), high, l);
}
/// a · b + c, rounded once.
template <detail::Device A, detail::Operand B, detail::Operand C>
auto fma(const A& a, const B& b, const C& c, Loc l = Loc::here()) {
  using T = detail::elem_t<A>;
  static_assert(detail::Takes<T, true>::ok);
  detail::Ids<T> x = a.ids(l), y = detail::converted<T>(b, l), z = detail::converted<T>(c, l), out;
  for (int k = 0; k < detail::count_of<T>; k++)
    out.v[k] = detail::ternary(detail::Op::fma, x.v[k], y.v[k], z.v[k], l);
  return detail::value<T>(out);
}
/// The integer below or equal.
template <detail::Device U>
auto ifloor(const U& u, Loc l = Loc::here()) {
  return cast<int32_t>(floor(u, l), l);
}
template <detail::Device U>
Val<bool> isnan(const U& u, Loc l = Loc::here()) {
  using T = detail::elem_t<U>;
  static_assert(detail::Takes<T, true>::ok && detail::is_scalar<T>);
  detail::Ids<T> a = u.ids(l);
  detail::Id out;
  detail::binary(detail::Op::ne, detail::type_of<T>, a.v, 1, a.v, 1, &out, l);
  return detail::value<bool>(out);
}

/// Components one beside the other, as in vec(i, j + 1).
template <detail::Operand A, detail::Operand B>
  requires(detail::Device<A> || detail::Device<B>)
auto vec(const A& a, const B& b, Loc l = Loc::here()) {
  using S = detail::meet_t<A, B>;
  return Val<Vec<S, 2>>{Arg<S>(a, l), Arg<S>(b, l)};
}
template <detail::Operand A, detail::Operand B, detail::Operand C>
  requires(detail::Device<A> || detail::Device<B> || detail::Device<C>)
auto vec(const A& a, const B& b, const C& c, Loc l = Loc::here()) {
  using S = detail::meet_t<Val<detail::meet_t<A, B>>, C>;
  return Val<Vec<S, 3>>{Arg<S>(a, l), Arg<S>(b, l), Arg<S>(c, l)};
}

/// Uniform in [0, 1) for floating types, all bits random for the others. The same numbers on every
/// device: they depend on the seed, the launch, the iteration and the number of the call.
template <class T>
Val<T> random(Loc l = Loc::here()) {
  static_assert(detail::DeviceScalar<T>, "quern: random<T> takes a scalar type");
  detail::Id first = detail::random_word(l);
  Val<uint32_t> word = detail::value<uint32_t>(first);
  if constexpr (std::is_same_v<T, bool>)
    return word >= 0x80000000u;
  else if constexpr (sizeof(T) < 8) {
    if constexpr (std::is_floating_point_v<T>)
      return cast<float>(word >> 8, l) * 0x1p-24f;
    else
      return cast<T>(word, l);
  } else {
    Val<uint32_t> low = detail::value<uint32_t>(detail::random_word(l, first));
    Val<uint64_t> both = cast<uint64_t>(word, l) << 32 | cast<uint64_t>(low, l);
    if constexpr (std::is_floating_point_v<T>)
      return cast<double>(both >> 11, l) * 0x1p-53;
    else
      return cast<T>(both, l);
  }
}

}  // namespace lang

// Found through the operands' namespace, too.
using lang::abs;
using lang::atan2;
using lang::ceil;
using lang::clamp;
using lang::copysign;
using lang::cos;
using lang::exp;
using lang::floor;
using lang::fma;
using lang::fmax;
using lang::fmin;
using lang::ifloor;
using lang::isnan;
using lang::log;
using lang::max;
using lang::min;
using lang::pow;
using lang::round;
using lang::select;
using lang::sin;
using lang::sqrt;
using lang::trunc;

}  // namespace quern
