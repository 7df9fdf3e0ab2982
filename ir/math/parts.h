#pragma once
// Taking f64 numbers apart and putting them together: exponents, signs, rounding to integers.
#include <bit>
#include <limits>

#include "ir/math/expr.h"

namespace quern::ir::math {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr uint64_t sign_f64 = uint64_t(1) << 63;

/// `x` rounded to the nearest integer, |x| < 2^51: as a float and in the low bits of `digits`
/// (two's complement). Adding 1.5·2^52 leaves no place for a fraction (Muller et al.,
/// Handbook, 2.1).
struct Rounded {
  Expr value, digits;
};
inline Rounded round_to_integer(Expr x) {
  Uncontracted keep(x);
  constexpr double shift = 0x1.8p52;
  Expr t = x + shift;
  return {t - shift, bitcast(t, Type::i64) - int64_t(std::bit_cast<uint64_t>(shift))};
}

/// y · 2^n for an integer |n| ≤ 1100 and y in [1/2, 2]: rounds once, also where it is subnormal
/// (the first factor keeps it normal), and overflows to infinity.
inline Expr scale(Expr y, Expr n) {
  Expr first = n >> 1, second = n - first;
  auto power = [](Expr e) { return bitcast((e + 1023) << 52, Type::f64); };
  return y * power(first) * power(second);
}

/// x = m · 2^k with m in [√½, √2), for positive normal x.
struct Decomposed {
  Expr m, k;  ///< k as f64
};
inline Decomposed decompose(Expr x) {
  Expr u = bits(x);
  Expr d = u - std::bit_cast<uint64_t>(0x1.6a09e667f3bcdp-1);
  Expr biased = (d + (uint64_t(1024) << 52)) >> 52;  // k + 1024
  Expr m = float_of(u - (d & 0xfff0000000000000u));
  Uncontracted keep(x);
  Expr k = float_of(biased | std::bit_cast<uint64_t>(0x1p52)) - (0x1p52 + 1024);
  return {m, k};
}

/// The same for positive x, subnormals included.
inline Decomposed decompose_any(Expr x) {
  Expr tiny = x < 0x1p-1022;
  Decomposed d = decompose(select(tiny, x * 0x1p54, x));
  return {d.m, select(tiny, d.k - 54.0, d.k)};
}

inline Expr sign_of(Expr x) { return bits(x) & sign_f64; }
inline Expr flip_sign(Expr x, Expr sign) { return float_of(bits(x) ^ sign); }
inline Expr is_nan(Expr x) { return x != x; }

}  // namespace quern::ir::math
