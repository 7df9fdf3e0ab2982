#pragma once
// Powers of integers, of vectors by component, for operands of the host and of the device: modulo
// 2^width, as products are. To a negative power 1 is 1, -1 is ±1, everything else 0: the quotient
// 1 / b^-e, truncated.
#include "quern/control/control.h"
#include "quern/math/elementary.h"

namespace quern {
namespace detail {

template <class X>
inline constexpr bool of_integers = Integer<scalar_t<elem_t<X>>>;
template <class A, class B>
concept DeviceIntegers = OneDevice<A, B> && of_integers<A> && of_integers<B>;
template <class A, class B>
concept HostIntegers = HostPair<A, B> && of_integers<A> && of_integers<B>;

/// base to a power known while recording.
template <class S>
Val<S> power(const Val<S>& base, uint64_t exponent) {
  if (exponent == 0) return S(1);
  if (exponent == 1) return base;
  Val<S> root = power(base, exponent / 2);
  Val<S> square = root * root;
  if (exponent % 2 == 0) return square;
  return square * base;
}
template <class S, class E>
Val<S> power(const Val<S>& base, const Val<E>& exponent) {
  using Bits = std::make_unsigned_t<E>;
  Var<S> out = S(1), square = base;
  Var<Bits> left = cast<Bits>(max(exponent, E(0)));
  for (auto _ : lang::repeat_while([&] { return left != Bits(0); })) {
    out = select((left & Bits(1)) != Bits(0), out * square, out);
    square *= square;
    left >>= 1;
  }
  return out;
}
/// base to a negative power.
template <class S, class B>
Val<S> reciprocal_power(const Val<S>& base, const B& odd) {
  Val<S> zero = S(0), one = S(1);
  if constexpr (std::is_signed_v<S>) {
    auto of_minus_one = select(base == S(-1), select(odd, Val<S>(S(-1)), one), zero);
    return select(base == S(1), one, of_minus_one);
  } else {
    return select(base == S(1), one, zero);
  }
}

/// The power of scalars, one of them of the device.
template <class S, class E>
Val<S> integer_power(const Val<S>& base, const E& exponent) {
  if constexpr (HostNumber<E>) {
    if (exponent >= 0) return power(base, uint64_t(exponent));
    return reciprocal_power(base, Val<bool>(exponent % 2 != 0));
  } else {
    using N = promoted_t<elem_t<E>>;
    Val<N> n = exponent;
    Val<S> upward = power(base, n);
    if constexpr (std::is_unsigned_v<N>)
      return upward;
    else
      return select(n < 0, reciprocal_power(base, (n & 1) != 0), upward);
  }
}

template <class S, class E>
constexpr S host_integer_power(S base, E exponent) {
  if (exponent < 0) {
    const bool unit = base == S(1) || (std::is_signed_v<S> && base == S(-1));
    return unit ? (exponent % 2 == 0 ? S(1) : base) : S(0);
  }
  using Bits = std::make_unsigned_t<S>;
  Bits out = 1, square = Bits(base);
  for (auto left = uint64_t(exponent); left != 0; left >>= 1, square *= square)
    if (left & 1) out *= square;
  return S(out);
}

}  // namespace detail

namespace lang {

template <class A, class B>
  requires detail::DeviceIntegers<A, B>
auto pow(A&& a, B&& b, Loc l = Loc::here()) {
  using BaseType = detail::elem_t<A>;
  using S = detail::promoted_t<detail::scalar_t<BaseType>>;
  using Shaped = std::conditional_t<detail::is_scalar<BaseType>, detail::elem_t<B>, BaseType>;
  using T = detail::rebind_t<Shaped, S>;
  [[maybe_unused]] detail::Placed here(l, std::forward<A>(a), std::forward<B>(b));
  static_assert(detail::meets_shape<A, B>, "quern: the number of components differs");
  const Val<detail::rebind_t<BaseType, S>> base(a, l);
  auto part = [](const auto& v, int k) {
    using V = detail::elem_t<decltype(v)>;
    if constexpr (detail::is_scalar<V>)
      return v;
    else if constexpr (detail::Device<decltype(v)>)
      return detail::value<detail::scalar_t<V>>(v.quern_ids(Loc{}).v[k]);
    else
      return v.value(k);
  };
  auto exponent = [&] {
    if constexpr (detail::Device<B>)
      return Val<detail::elem_t<B>>(b, l);
    else
      return b;
  }();
  detail::Ids<T> out;
  for (int k = 0; k < detail::count_of<T>; k++) {
    Val<S> power = detail::integer_power(Val<S>(part(base, k)), part(exponent, k));
    out.v[k] = power.quern_ids(l).v[0];
  }
  return detail::value<T>(out);
}
template <class A, class B>
  requires detail::HostIntegers<A, B>
constexpr auto pow(const A& a, const B& b) {
  using S = detail::promoted_t<detail::scalar_t<A>>;
  return detail::host_map([](auto x, auto n) { return detail::host_integer_power(S(x), n); }, a, b);
}

}  // namespace lang
using lang::pow;
}  // namespace quern
