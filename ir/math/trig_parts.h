#pragma once
// Sine and cosine near zero, for the functions that put more around them.
#include "ir/math/coefficients.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

/// sin and cos of hi + lo, |hi| ≤ π/4, f64: the leading terms enter exactly, and hi + lo of the
/// result has a few bits more than hi.
inline Pair sin_pair(Pair r) {
  Expr z = r.hi * r.hi;
  Expr cube = z * r.hi;
  Expr p = polynomial(z, table::sin_f64, 1);
  return fast_two_sum(r.hi, -((z * (0.5 * r.lo - cube * p) - r.lo) - cube * table::sin_f64[0]));
}
inline Pair cos_pair(Pair r) {
  Expr z = r.hi * r.hi;
  Expr half = 0.5 * z;
  Expr lead = 1.0 - half;
  Expr rest = ((1.0 - lead) - half) + (z * (z * polynomial(z, table::cos_f64)) - r.hi * r.lo);
  return fast_two_sum(lead, rest);
}

}  // namespace quern::ir::math
