#pragma once
// Taking floats apart and putting them together: exponents, signs, rounding to integers. Every
// helper takes f32 and f64.
#include <bit>
#include <limits>

#include "ir/math/expr.h"

namespace quern::ir::math {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr uint64_t sign_f64 = uint64_t(1) << 63;

/// The layout of a binary format and the integers of its width.
struct Format {
  Type word, integer;  ///< unsigned and signed
  int digits;          ///< explicit digits of the significand
  int bias;            ///< of the exponent
};
inline constexpr Format format_f32{Type::u32, Type::i32, 23, 127};
inline constexpr Format format_f64{Type::u64, Type::i64, 52, 1023};
inline const Format& format(Expr x) { return bit_width(x.type()) == 32 ? format_f32 : format_f64; }

/// `x` rounded to the nearest integer, |x| < 2^22 (f32) or 2^51 (f64): as a float and in the low
/// bits of `digits` (two's complement). Adding 1.5·2^23 or 1.5·2^52 leaves no place for a fraction
/// (Muller et al., Handbook, 2.1).
struct Rounded {
  Expr value, digits;
};
inline Rounded round_to_integer(Expr x) {
  Uncontracted keep(x);
  const Format& f = format(x);
  Expr shift = constant(x, x.type(), f.digits == 23 ? 0x1.8p23 : 0x1.8p52);
  Expr t = x + shift;
  return {t - shift, bitcast(t, f.integer) - bitcast(shift, f.integer)};
}

/// 2^n for an integer n of a normal power.
inline Expr power_of_two(Expr n) {
  const Format& f = format(n);
  return float_of((n + f.bias) << f.digits);
}

/// y · 2^n for y in [1/2, 2] and an integer |n| ≤ 1100 (f64), 200 (f32): rounds once, also where it
/// is subnormal (the first factor keeps it normal), and overflows to infinity.
inline Expr scale(Expr y, Expr n) {
  Expr first = n >> 1, second = n - first;
  return y * power_of_two(first) * power_of_two(second);
}

/// x = m · 2^k with m in [√½, √2), for positive normal x.
struct Decomposed {
  Expr m, k;  ///< k as a float
};
inline Decomposed decompose(Expr x) {
  const bool wide = x.type() == Type::f64;
  const Format& f = format(x);
  Expr u = bits(x);
  Expr d = u - (wide ? std::bit_cast<uint64_t>(0x1.6a09e667f3bcdp-1)
                     : uint64_t(std::bit_cast<uint32_t>(0x1.6a09e6p-1f)));
  Expr m = float_of(u - ((d >> f.digits) << f.digits));
  if (!wide) return {m, convert(bitcast(d, Type::i32) >> f.digits, Type::f32)};
  // Not every processor converts integers of 64 bits in vectors.
  Expr biased = (d + (uint64_t(f.bias + 1) << f.digits)) >> f.digits;  // k + bias + 1
  Uncontracted keep(x);
  Expr k = float_of(biased | bits(constant(x, x.type(), 0x1p52))) - (0x1p52 + f.bias + 1);
  return {m, k};
}

/// The same for positive x, subnormals included.
inline Decomposed decompose_any(Expr x) {
  const bool wide = x.type() == Type::f64;
  const double shift = wide ? 54 : 24;
  Expr tiny = x < (wide ? 0x1p-1022 : 0x1p-126);
  Decomposed d = decompose(select(tiny, x * (wide ? 0x1p54 : 0x1p24), x));
  return {d.m, select(tiny, d.k - shift, d.k)};
}

/// Is x a positive normal number?
inline Expr is_positive_normal(Expr x) {
  const bool wide = x.type() == Type::f64;
  const uint64_t least = uint64_t(1) << format(x).digits;
  const uint64_t inf = wide ? 0x7ff0000000000000u : 0x7f800000u;
  return bits(x) - least < constant(bits(x), format(x).word, inf - least);
}

/// One value, mostly found the usual way. `usual` may be run for any argument and is pure.
template <class F, class G>
Expr rarely_else(Expr condition, F&& rare, G&& usual) {
  return choose_rarely(
      condition, [&] { return std::vector{rare()}; }, [&] { return std::vector{usual()}; })[0];
}

inline Expr sign_of(Expr x) {
  return bits(x) & (x.type() == Type::f64 ? sign_f64 : uint64_t(1) << 31);
}
inline Expr flip_sign(Expr x, Expr sign) { return float_of(bits(x) ^ sign); }
inline Expr is_nan(Expr x) { return x != x; }

}  // namespace quern::ir::math
