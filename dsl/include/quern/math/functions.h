#pragma once
// Functions of values: conversions, choice, arithmetic, random numbers, of vectors by component.
// Their meaning stands in docs/semantics.md. All take host operands as well, so that code written
// once, such as a structure's method, runs in both worlds.
#include "quern/values/elem.h"

namespace quern {
namespace detail {

template <class S, class H>
consteval auto met_host() {
  if constexpr (is_floating<S>)
    return std::type_identity<S>{};
  else if constexpr (is_floating<H>)
    return std::type_identity<std::conditional_t<(sizeof(H) > 4), double, H>>{};
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
struct Meet {
  using type = rebind_t<std::conditional_t<is_scalar<elem_t<A>>, elem_t<B>, elem_t<A>>,
                        typename decltype(met<A, B>())::type>;
};
template <class A, class B>
  requires(is_structure<elem_t<A>> || is_structure<elem_t<B>>)
struct Meet<A, B> {
  using type = elem_t<A>;
};
template <class A, class B>
using meet_t = typename Meet<A, B>::type;

template <class A, class B>
inline constexpr bool meets_shape =
    is_scalar<elem_t<A>> || is_scalar<elem_t<B>> || same_shape<elem_t<A>, elem_t<B>>;

template <class T, class U>
struct Meets {
  using S = scalar_t<elem_t<U>>;
  using C = scalar_t<T>;
  static_assert(!std::is_unsigned_v<C> || std::is_same_v<C, bool> || Host<U> ||
                    std::is_unsigned_v<S>,
                "quern: an integer that may be negative meets an unsigned one here; cast one side");
  static constexpr bool ok = is_scalar<elem_t<U>> || same_shape<T, elem_t<U>>;
  static_assert(ok, "quern: the number of components differs");
};
/// Structures meet their like only, where one is chosen.
template <class T, class U>
  requires(is_structure<T> || is_structure<elem_t<U>>)
struct Meets<T, U> : Initialises<T, U> {};

/// An operand in the type T it meets another at.
template <class T, Operand U>
Ids<T> meeting(U&& u, Loc loc) {
  if constexpr (!Meets<T, U>::ok || is_structure<T>)
    return converted<T>(std::forward<U>(u), loc);
  else {
    constexpr int n = count_of<elem_t<U>>;
    auto from = operand_ids<scalar_t<T>>(std::forward<U>(u), loc);
    Ids<T> out;
    for (int k = 0; k < count_of<T>; k++)
      out.v[k] = n == 1 && k > 0 ? out.v[0] : convert(from.v[n == 1 ? 0 : k], type_of<T>, loc);
    return out;
  }
}

template <class T, bool Floats, bool Numbers = true>
struct Takes {
  using S = scalar_t<T>;
  static_assert(!Floats || is_floating<S>,
                "quern: this function takes floating values; write cast<float>(value)");
  static_assert(!Numbers || !std::is_same_v<S, bool>, "quern: this function takes numbers");
  static constexpr bool ok = true;
};

template <class T>
struct TakesIntegers {
  static constexpr bool ok = Integer<scalar_t<T>>;
  static_assert(ok, "quern: this function takes integers");
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
concept OneDevice = Uniform<A> && Uniform<B> && (Device<A> || Device<B>);

template <class... X>
concept SomeDevice = (Uniform<X> && ...) && (Device<X> || ...);
/// What two operands yield together: of the host where both are.
template <class A, class B>
using Met = std::conditional_t<Device<A> || Device<B>, Val<meet_t<A, B>>, meet_t<A, B>>;

// ---- host operands
/// Where two host operands meet: a scalar takes the type of an aggregate's.
template <class A, class B>
using host_meet_t = typename std::conditional_t<
    is_scalar<A>, std::conditional_t<is_scalar<B>, std::common_type<A, B>, std::type_identity<B>>,
    std::type_identity<A>>::type;
template <class X>
concept HostFloat = HostUniform<X> && std::is_floating_point_v<scalar_t<bare<X>>>;
template <class A, class B>
concept HostPair = HostUniform<A> && HostUniform<B> && meets_shape<A, B>;
/// Component k; a scalar has one for every k.
template <HostUniform U>
constexpr auto host_part(const U& u, int k) {
  if constexpr (is_scalar<U>)
    return u;
  else
    return u.value(k);
}
/// f of the components of u… beside each other.
template <class F, HostUniform A, HostUniform... U>
constexpr auto host_map(F f, const A& a, const U&... u) {
  using S = decltype(f(host_part(a, 0), host_part(u, 0)...));
  if constexpr (is_scalar<A> && (is_scalar<U> && ...))
    return S(f(a, u...));
  else {
    using Shaped = std::conditional_t<is_scalar<A>, Nth<sizeof...(U) == 0 ? 0 : 1, A, U..., A>, A>;
    rebind_t<Shaped, S> out;
    for (int k = 0; k < count_of<Shaped>; k++)
      out.value(k) = f(host_part(a, k), host_part(u, k)...);
    return out;
  }
}

template <class Bits>
constexpr int host_leading_zeros(Bits bits) {
  constexpr int width = 8 * int(sizeof(Bits));
  return bits == 0 ? width : __builtin_clzll(bits) - (64 - width);
}
template <class Bits>
constexpr int host_trailing_zeros(Bits bits) {
  return bits == 0 ? 8 * int(sizeof(Bits)) : __builtin_ctzll(bits);
}

}  // namespace detail

namespace lang {

/// Converts, also where it narrows: floating to integer rounds toward zero and saturates, NaN
/// becomes 0; wide to narrow truncates.
template <class S, detail::Device U>
auto cast(U&& u, Loc l = Loc::here()) {
  static_assert(detail::DeviceScalar<S>, "quern: cast<T> takes a scalar type");
  static_assert(detail::Uniform<U>, "quern: cast<T> converts numbers, not structures");
  using T = detail::rebind_t<detail::elem_t<U>, S>;
  auto from = std::forward<U>(u).quern_ids(l);
  detail::Ids<T> out;
  for (int k = 0; k < detail::count_of<T>; k++)
    out.v[k] = detail::convert(from.v[k], detail::type_of<T>, l);
  return detail::value<T>(out);
}
template <class S, detail::HostUniform U>
constexpr auto cast(const U& u) {
  return detail::host_map([](auto v) { return S(v); }, u);
}

/// The same bits as another type of the same width.
template <class S, detail::Device U>
Val<S> bitcast(U&& u, Loc l = Loc::here()) {
  using F = detail::elem_t<U>;
  static_assert(detail::is_scalar<F> && sizeof(S) == sizeof(F) && !std::is_same_v<S, bool> &&
                    !std::is_same_v<F, bool>,
                "quern: bitcast<T> takes a number of the same width");
  return detail::value<S>(
      detail::bitcast(std::forward<U>(u).quern_ids(l).v[0], detail::scalar_of<S>(), l));
}

/// `c ? a : b`, with both recorded.
template <detail::Operand A, detail::Operand B>
auto select(Arg<bool> c, A&& a, B&& b) {
  using T = detail::meet_t<A, B>;
  detail::Ids<T> x = detail::meeting<T>(std::forward<A>(a), c.loc),
                 y = detail::meeting<T>(std::forward<B>(b), c.loc), out;
  detail::in_order(c.loc, c.ids, x, y);
  for (int k = 0; k < detail::count_of<T>; k++)
    out.v[k] = detail::ternary(detail::Op::select, c.id(), x.v[k], y.v[k], c.loc);
  return detail::value<T>(out);
}

/// Component by component: `c[k] ? a[k] : b[k]`.
template <detail::Device C, detail::Uniform A, detail::Uniform B>
  requires(detail::is_vector<detail::elem_t<C>>)
auto select(C&& c, A&& a, B&& b, Loc l = Loc::here()) {
  using M = detail::meet_t<A, B>;
  using T = detail::rebind_t<detail::elem_t<C>, detail::scalar_t<M>>;
  static_assert(std::is_same_v<detail::scalar_t<detail::elem_t<C>>, bool>,
                "quern: the condition of select is a bool or a vector of them");
  detail::Ids<T> x = detail::meeting<T>(std::forward<A>(a), l),
                 y = detail::meeting<T>(std::forward<B>(b), l), out;
  auto chosen = std::forward<C>(c).quern_ids(l);
  detail::in_order(l, chosen, x, y);
  for (int k = 0; k < detail::count_of<T>; k++)
    out.v[k] = detail::ternary(detail::Op::select, chosen.v[k], x.v[k], y.v[k], l);
  return detail::value<T>(out);
}
template <class A, class B>
  requires detail::HostPair<A, B>
constexpr auto select(bool c, A&& a, B&& b) {
  return detail::host_map([c](auto x, auto y) { return c ? x : y; }, a, b);
}
template <int N, detail::HostUniform A, detail::HostUniform B>
constexpr auto select(const Vec<bool, N>& c, A&& a, B&& b) {
  return detail::host_map([](bool w, auto x, auto y) { return w ? x : y; }, c, a, b);
}

// `host` is the C library's function, without its suffix.
#define QUERN_FLOAT_FUNCTION(name, op, host)                                   \
  template <detail::DeviceUniform U>                                           \
  auto name(U&& u, Loc l = Loc::here()) {                                      \
    using T = detail::elem_t<U>;                                               \
    static_assert(detail::Takes<T, true>::ok);                                 \
    return detail::map<T>(detail::Op::op, std::forward<U>(u).quern_ids(l), l); \
  }                                                                            \
  template <detail::HostFloat U>                                               \
  constexpr auto name(const U& u) {                                            \
    return detail::host_map(                                                   \
        [](auto v) {                                                           \
          if constexpr (sizeof v == 4)                                         \
            return __builtin_##host##f(v);                                     \
          else                                                                 \
            return __builtin_##host(v);                                        \
        },                                                                     \
        u);                                                                    \
  }
QUERN_FLOAT_FUNCTION(sqrt, sqrt, sqrt)
QUERN_FLOAT_FUNCTION(floor, floor, floor)
QUERN_FLOAT_FUNCTION(ceil, ceil, ceil)
QUERN_FLOAT_FUNCTION(trunc, trunc, trunc)
QUERN_FLOAT_FUNCTION(round, round, rint)  // to nearest, ties to even
#undef QUERN_FLOAT_FUNCTION

#define QUERN_FUNCTION_OF_TWO(name, op, floats)         \
  template <class A, class B>                           \
    requires detail::OneDevice<A, B>                    \
  auto name(A&& a, B&& b, Loc l = Loc::here()) {        \
    using T = detail::meet_t<A, B>;                     \
    static_assert(detail::Takes<T, floats>::ok);        \
    auto x = detail::meeting<T>(std::forward<A>(a), l); \
    auto y = detail::meeting<T>(std::forward<B>(b), l); \
    return detail::map<T>(detail::Op::op, x, y, l);     \
  }
QUERN_FUNCTION_OF_TWO(min, min, false)   // b < a ? b : a
QUERN_FUNCTION_OF_TWO(max, max, false)   // a < b ? b : a
QUERN_FUNCTION_OF_TWO(fmin, fmin, true)  // skips a NaN, orders -0 < +0
QUERN_FUNCTION_OF_TWO(fmax, fmax, true)
QUERN_FUNCTION_OF_TWO(copysign, copysign, true)
#undef QUERN_FUNCTION_OF_TWO
#define QUERN_HOST_OF_TWO(name, ...)                                          \
  template <class A, class B>                                                 \
    requires detail::HostPair<A, B>                                           \
  constexpr auto name(const A& a, const B& b) {                               \
    using S = detail::scalar_t<detail::host_meet_t<A, B>>;                    \
    return detail::host_map([](S x, S y) -> S { return __VA_ARGS__; }, a, b); \
  }
QUERN_HOST_OF_TWO(min, y < x ? y : x)
QUERN_HOST_OF_TWO(max, x < y ? y : x)
QUERN_HOST_OF_TWO(fmin, S(__builtin_fmin(x, y)))
QUERN_HOST_OF_TWO(fmax, S(__builtin_fmax(x, y)))
QUERN_HOST_OF_TWO(copysign, S(__builtin_copysign(x, y)))
#undef QUERN_HOST_OF_TWO

template <detail::HostUniform U>
constexpr auto abs(const U& u) {
  using S = detail::scalar_t<U>;
  return detail::host_map(
      [](S v) -> S {
        if constexpr (std::is_floating_point_v<S>)
          return S(__builtin_fabs(v));
        else
          return v < S(0) ? S(-v) : v;
      },
      u);
}
template <detail::DeviceUniform U>
auto abs(U&& u, Loc l = Loc::here()) {
  using T = detail::elem_t<U>;
  static_assert(detail::Takes<T, false>::ok);
  return detail::map<T>(detail::Op::abs, std::forward<U>(u).quern_ids(l), l);
}
template <detail::Device A, detail::Operand L, detail::Operand H>
auto clamp(A&& a, L&& low, H&& high, Loc l = Loc::here()) {
  return min(max(std::forward<A>(a), std::forward<L>(low), l), std::forward<H>(high), l);
}
template <detail::HostUniform A, detail::HostUniform L, detail::HostUniform H>
constexpr auto clamp(const A& a, const L& low, const H& high) {
  return min(max(a, low), high);
}
/// a · b + c, rounded once.
template <detail::Device A, detail::Operand B, detail::Operand C>
auto fma(A&& a, B&& b, C&& c, Loc l = Loc::here()) {
  using T = detail::elem_t<A>;
  static_assert(detail::Takes<T, true>::ok);
  detail::Ids<T> x = std::forward<A>(a).quern_ids(l),
                 y = detail::converted<T>(std::forward<B>(b), l),
                 z = detail::converted<T>(std::forward<C>(c), l), out;
  detail::in_order(l, x, y, z);
  for (int k = 0; k < detail::count_of<T>; k++)
    out.v[k] = detail::ternary(detail::Op::fma, x.v[k], y.v[k], z.v[k], l);
  return detail::value<T>(out);
}
// In the type of the operand; `host` counts for unsigned integers of the host.
#define QUERN_COUNT(name, host)                                                          \
  template <detail::DeviceUniform U>                                                     \
  auto name(U&& u, Loc l = Loc::here()) {                                                \
    using T = detail::elem_t<U>;                                                         \
    static_assert(detail::TakesIntegers<T>::ok);                                         \
    return detail::map<T>(detail::Op::name, std::forward<U>(u).quern_ids(l), l);         \
  }                                                                                      \
  template <detail::HostUniform U>                                                       \
    requires detail::Integer<detail::scalar_t<U>>                                        \
  constexpr auto name(const U& u) {                                                      \
    using S = detail::scalar_t<U>;                                                       \
    return detail::host_map([](S v) { return S(host(std::make_unsigned_t<S>(v))); }, u); \
  }
QUERN_COUNT(popcount, __builtin_popcountll)    // bits that are 1
QUERN_COUNT(clz, detail::host_leading_zeros)   // zeros above the highest 1; of 0 the width
QUERN_COUNT(ctz, detail::host_trailing_zeros)  // zeros below the lowest 1; of 0 the width
#undef QUERN_COUNT

/// The value itself, of any type, which derivatives take for a constant. In other kernels it costs
/// nothing and changes nothing.
template <detail::Device U>
auto stop_gradient(U&& u, Loc l = Loc::here()) {
  using T = detail::elem_t<U>;
  detail::Ids<T> ids = std::forward<U>(u).quern_ids(l);
  for (int k = 0; k < detail::count_of<T>; k++) {
    const detail::Scalar s = detail::scalars_of<T>.v[k];
    if (s == detail::Scalar::f16 || s == detail::Scalar::f32 || s == detail::Scalar::f64)
      ids.v[k] = detail::unary(detail::Op::stop_gradient, ids.v[k], l);
  }
  return detail::value<T>(ids);
}
template <detail::Host U>
constexpr U stop_gradient(const U& u) {
  return u;
}

/// The integer below or equal.
template <detail::Device U>
auto ifloor(U&& u, Loc l = Loc::here()) {
  return cast<int32_t>(floor(std::forward<U>(u), l), l);
}
template <detail::HostFloat U>
constexpr auto ifloor(const U& u) {
  return cast<int32_t>(floor(u));
}
/// Components one beside the other, as in vec(i, j + 1).
template <class A, class B>
  requires detail::SomeDevice<A, B>
auto vec(A&& a, B&& b, Loc l = Loc::here()) {
  using S = detail::meet_t<A, B>;
  return Val<Vec<S, 2>>{Arg<S>(std::forward<A>(a), l), Arg<S>(std::forward<B>(b), l)};
}
template <class A, class B, class C>
  requires detail::SomeDevice<A, B, C>
auto vec(A&& a, B&& b, C&& c, Loc l = Loc::here()) {
  using S = detail::meet_t<detail::Met<A, B>, C>;
  return Val<Vec<S, 3>>{Arg<S>(std::forward<A>(a), l), Arg<S>(std::forward<B>(b), l),
                        Arg<S>(std::forward<C>(c), l)};
}
template <class A, class B, class C, class D>
  requires detail::SomeDevice<A, B, C, D>
auto vec(A&& a, B&& b, C&& c, D&& d, Loc l = Loc::here()) {
  using S = detail::meet_t<detail::Met<detail::Met<A, B>, C>, D>;
  return Val<Vec<S, 4>>{Arg<S>(std::forward<A>(a), l), Arg<S>(std::forward<B>(b), l),
                        Arg<S>(std::forward<C>(c), l), Arg<S>(std::forward<D>(d), l)};
}
template <detail::HostNumber A, detail::HostNumber... U>
  requires(sizeof...(U) >= 1 && sizeof...(U) <= 3)
constexpr auto vec(A a, U... u) {
  using S = detail::canonical_t<std::common_type_t<A, U...>>;
  return Vec<S, int(sizeof...(U)) + 1>(S(a), S(u)...);
}

/// Uniform in [0, 1) for floating types, all bits random for the others. The same numbers on every
/// device: they depend on the seed, the launch, the iteration and the number of the call.
template <class T>
Val<T> random(Loc l = Loc::here()) {
  static_assert(detail::DeviceScalar<T>, "quern: random<T> takes a scalar type");
  static_assert(!detail::is_half<T>,
                "quern: random<T> has too few numbers to be uniform in half; write "
                "cast<half>(random<float>())");
  detail::Placed placed(l);
  Val<uint32_t> word = detail::value<uint32_t>(detail::random_word(l));
  if constexpr (std::is_same_v<T, bool>)
    return std::move(word) >= 0x80000000u;
  else if constexpr (sizeof(T) < 8) {
    if constexpr (std::is_floating_point_v<T>)
      return cast<float>(std::move(word) >> 8, l) * 0x1p-24f;
    else
      return cast<T>(std::move(word), l);
  } else {
    Val<uint32_t> low = detail::value<uint32_t>(detail::random_word(l));
    Val<uint64_t> both =
        cast<uint64_t>(std::move(word), l) << 32 | cast<uint64_t>(std::move(low), l);
    if constexpr (std::is_floating_point_v<T>)
      return cast<double>(std::move(both) >> 11, l) * 0x1p-53;
    else
      return cast<T>(std::move(both), l);
  }
}

}  // namespace lang

// Found through the operands' namespace, too.
using lang::abs;
using lang::cast;
using lang::ceil;
using lang::clamp;
using lang::clz;
using lang::copysign;
using lang::ctz;
using lang::floor;
using lang::fma;
using lang::fmax;
using lang::fmin;
using lang::ifloor;
using lang::max;
using lang::min;
using lang::popcount;
using lang::round;
using lang::select;
using lang::sqrt;
using lang::stop_gradient;
using lang::trunc;
using lang::vec;

}  // namespace quern
