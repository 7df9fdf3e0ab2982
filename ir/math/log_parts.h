#pragma once
// What the logarithms and the inverse hyperbolic functions share.
#include "ir/math/coefficients.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

/// f - log(1 + f) for 1 + f in [√½, √2): the part of a logarithm that may be rounded, at most f²/2
/// and a little.
///
/// f64: with s = f / (2 + f), log(1 + f) = 2 atanh s = f - s (f - R), R = 2 atanh(s) / s - 2,
/// written so that f and f²/2 enter unrounded by the polynomial (Tang, ACM TOMS 16(4), 1990;
/// Muller, 4.2). f32 takes a polynomial in f, which needs no division.
inline Expr log_tail(Expr f) {
  Expr square = 0.5 * f * f;
  if (f.type() == Type::f32) return square - f * f * f * polynomial(f, table::log_single);
  Expr s = f / (2.0 + f);
  Expr z = s * s;
  Expr r = z * polynomial(z, table::log_f64);
  return square - s * (square + r);
}

/// k ln 2 + log(1 + f + correction) for 1 + f in [√½, √2) and a correction below an ulp of 1.
inline Expr log_sum(Expr k, Expr f, Expr correction) {
  const auto& ln2 = k.type() == Type::f64 ? table::ln2 : table::ln2_single;
  return k * ln2[0] + (f - ((log_tail(f) - correction) - k * ln2[1]));
}

/// log(1 + y + lost) for y > -1 up to 2^1000 (f64) or 2^120 (f32), |lost| ≤ ulp(y).
Expr log1p_of(Expr y, Expr lost);

/// log(2x) for large finite x.
inline Expr log_of_twice(Expr x) {
  Decomposed d = decompose(x);
  return log_sum(d.k + 1.0, d.m - 1.0, constant(x, x.type(), 0.0));
}

}  // namespace quern::ir::math
