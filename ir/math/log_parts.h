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

/// k ln 2 + f - tail: `tail` below |f| in size; the first sum is exact.
inline Expr log_sum(Expr k, Expr f, Expr tail) {
  const auto& ln2 = k.type() == Type::f64 ? table::ln2 : table::ln2_single;
  Pair lead = fast_two_sum(k * ln2[0], f);
  return lead.hi + (lead.lo + (k * ln2[1] - tail));
}

/// log(1 + y + lost) + doublings · ln 2 for y ≥ 0 or near 0, |lost| ≤ ulp(y).
Expr log1p_of(Expr y, Expr lost, Expr doublings);

}  // namespace quern::ir::math
