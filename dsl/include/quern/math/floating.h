#pragma once
// Floats taken apart and put together: classes, sign, exponent and fraction, neighbours. Scalars of
// the device; vectors by component where a function yields one value.
#include "quern/math/functions.h"

namespace quern {
namespace detail {

/// The format of f16, f32 and f64.
template <class S>
struct Format754 {
  using bits = std::conditional_t<sizeof(S) == 2, uint16_t,
                                  std::conditional_t<sizeof(S) == 4, uint32_t, uint64_t>>;
  using signed_bits = std::make_signed_t<bits>;
  static constexpr int fraction_bits = sizeof(S) == 2 ? 10 : sizeof(S) == 4 ? 23 : 52;
  static constexpr int max_exponent =  ///< also the bias
      sizeof(S) == 2   ? 15
      : sizeof(S) == 4 ? 127
                       : 1023;
  static constexpr int min_exponent = 1 - max_exponent;  ///< of normal numbers
  static constexpr bits sign = bits(1) << (8 * sizeof(S) - 1);
  static constexpr bits exponent = bits(2 * max_exponent + 1) << fraction_bits;
  /// 2^n, a normal number.
  static constexpr S power(int n) {
    return __builtin_bit_cast(S, bits(bits(n + max_exponent) << fraction_bits));
  }
  static constexpr S infinity = __builtin_bit_cast(S, exponent);
};

template <class U>
concept DeviceFloat = Device<U> && is_scalar<elem_t<U>> && Takes<elem_t<U>, true>::ok;

/// test(v) for each component.
template <class U, class F>
auto classify(const U& u, F test, Loc loc) {
  using T = elem_t<U>;
  static_assert(Takes<T, true>::ok);
  using S = scalar_t<T>;
  [[maybe_unused]] Placed here(loc);
  Ids<T> from = u.quern_ids(loc);
  Ids<rebind_t<T, bool>> out;
  for (int k = 0; k < count_of<T>; k++) {
    Val<bool> is = test(value<S>(from.v[k]));
    out.v[k] = is.quern_ids(loc).v[0];
  }
  return value<rebind_t<T, bool>>(out);
}

}  // namespace detail

/// What frexp yields, for `auto [fraction, exponent] = frexp(x)`.
template <class F, class E>
struct Fraction {
  F fraction;
  E exponent;
};

namespace lang {

template <detail::Device U>
auto isnan(const U& u, Loc l = Loc::here()) {
  return detail::classify(u, [](auto v) { return v != v; }, l);
}
template <detail::Device U>
auto isinf(const U& u, Loc l = Loc::here()) {
  using Format = detail::Format754<detail::scalar_t<detail::elem_t<U>>>;
  return detail::classify(u, [](auto v) { return abs(v) == Format::infinity; }, l);
}
/// Neither an infinity nor NaN.
template <detail::Device U>
auto isfinite(const U& u, Loc l = Loc::here()) {
  using Format = detail::Format754<detail::scalar_t<detail::elem_t<U>>>;
  return detail::classify(u, [](auto v) { return abs(v) < Format::infinity; }, l);
}
/// Finite, and neither zero nor subnormal.
template <detail::Device U>
auto isnormal(const U& u, Loc l = Loc::here()) {
  using Format = detail::Format754<detail::scalar_t<detail::elem_t<U>>>;
  return detail::classify(
      u,
      [](auto v) {
        auto exponent = bitcast<typename Format::bits>(v) & Format::exponent;
        return (exponent != 0) & (exponent != Format::exponent);
      },
      l);
}
/// The sign bit, of zeros and NaN too.
template <detail::Device U>
auto signbit(const U& u, Loc l = Loc::here()) {
  using Format = detail::Format754<detail::scalar_t<detail::elem_t<U>>>;
  return detail::classify(
      u, [](auto v) { return bitcast<typename Format::signed_bits>(v) < 0; }, l);
}

/// x·2^n, rounded once.
template <detail::DeviceFloat U, detail::Operand N>
auto ldexp(const U& x, const N& n, Loc l = Loc::here()) {
  using S = detail::elem_t<U>;
  // In f32 the product is exact, or far below the least half.
  if constexpr (detail::is_half<S>) {
    return Val<S>(cast<S>(ldexp(cast<float>(x, l), n, l), l));
  } else {
    using Format = detail::Format754<S>;
    using Bits = typename Format::signed_bits;
    constexpr int highest = Format::max_exponent, lowest = Format::min_exponent;
    // A step toward zero that leaves the fraction whole: only the last product may round.
    constexpr int down = lowest + Format::fraction_bits + 1;
    [[maybe_unused]] detail::Placed here(l);
    auto scaled = [&](Val<S> v, Val<int32_t> left, auto more) {
      auto up = left > highest, under = left < lowest;
      auto factor = select(up, Format::power(highest), select(under, Format::power(down), S(1)));
      Val<S> product = v * factor;
      Val<int32_t> rest = left - select(up, highest, select(under, down, 0));
      return more(product, rest);
    };
    Val<S> value(x, l);
    Val<int32_t> exponent(n, l);
    return scaled(value, exponent, [&](Val<S> a, Val<int32_t> i) {
      return scaled(a, i, [&](Val<S> b, Val<int32_t> j) {
        auto within = min(max(j, lowest), highest);
        auto bits = cast<Bits>(within + highest) << Format::fraction_bits;
        return Val<S>(b * bitcast<S>(bits));
      });
    });
  }
}

/// x = fraction·2^exponent with 0.5 ≤ |fraction| < 1; zeros, infinities and NaN are their own
/// fraction, with exponent 0.
template <detail::DeviceFloat U>
auto frexp(const U& x, Loc l = Loc::here()) {
  using S = detail::elem_t<U>;
  if constexpr (detail::is_half<S>) {
    auto [fraction, exponent] = frexp(cast<float>(x, l), l);
    return Fraction<Val<S>, Val<int32_t>>{cast<S>(fraction, l), exponent};
  } else {
    using Format = detail::Format754<S>;
    using Bits = typename Format::bits;
    constexpr int lift = Format::fraction_bits + 1;
    [[maybe_unused]] detail::Placed here(l);
    Val<S> v(x, l);
    auto tiny = abs(v) < Format::power(Format::min_exponent);
    auto bits = bitcast<Bits>(select(tiny, v * Format::power(lift), v));
    auto field = cast<int32_t>((bits & Format::exponent) >> Format::fraction_bits);
    auto plain = (v == 0) | !(abs(v) < Format::infinity);
    auto half = Bits(Bits(Format::max_exponent - 1) << Format::fraction_bits);
    auto fraction = bitcast<S>((bits & Bits(~Format::exponent)) | half);
    Val<int32_t> exponent =
        field - (Format::max_exponent - 1) - select(tiny, Val<int32_t>(lift), Val<int32_t>(0));
    return Fraction<Val<S>, Val<int32_t>>{select(plain, v, fraction),
                                          select(plain, Val<int32_t>(0), exponent)};
  }
}

/// The next number from x toward y: y where they are equal, NaN where one is.
template <class A, class B>
  requires detail::OneDevice<A, B>
auto nextafter(const A& a, const B& b, Loc l = Loc::here()) {
  using S = detail::meet_t<A, B>;
  static_assert(detail::is_scalar<S> && detail::Takes<S, true>::ok);
  using Format = detail::Format754<S>;
  using Bits = typename Format::bits;
  [[maybe_unused]] detail::Placed here(l);
  Val<S> x(a, l), y(b, l);
  auto bits = bitcast<Bits>(x);
  auto outward = (x < y) == (x > 0);
  auto moved = bitcast<S>(cast<Bits>(select(outward, bits + Bits(1), bits - Bits(1))));
  auto least = copysign(bitcast<S>(Val<Bits>(Bits(1))), y);
  auto next = select(x == 0, least, moved);
  return select(x == y, y, select(isnan(x) | isnan(y), x + y, next));
}

#define QUERN_HOST_CLASS(name)                                                           \
  template <detail::HostFloat U>                                                         \
  constexpr auto name(const U& u) {                                                      \
    return detail::host_map([](auto v) -> bool { return __builtin_##name(v) != 0; }, u); \
  }
QUERN_HOST_CLASS(isnan)
QUERN_HOST_CLASS(isinf)
QUERN_HOST_CLASS(isfinite)
QUERN_HOST_CLASS(isnormal)
QUERN_HOST_CLASS(signbit)
#undef QUERN_HOST_CLASS

}  // namespace lang

// Found through the operands' namespace, too.
using lang::frexp;
using lang::isfinite;
using lang::isinf;
using lang::isnan;
using lang::isnormal;
using lang::ldexp;
using lang::nextafter;
using lang::signbit;

}  // namespace quern
