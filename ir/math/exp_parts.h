#pragma once
// What exp, expm1 and the hyperbolic functions share: x by multiples of ln 2.
#include "ir/math/coefficients.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

/// x = n ln 2 + r + lost, |r| ≤ ln 2 / 2, |lost| ≤ ulp(r) / 2 (Cody & Waite, chapter 6).
struct ByLn2 {
  Rounded n;
  Expr r, lost;
};
inline ByLn2 by_ln2(Expr x) {
  const auto& ln2 = x.type() == Type::f64 ? table::ln2 : table::ln2_single;
  Rounded n = round_to_integer(x * table::log2_e);
  Expr hi = x - n.value * ln2[0];  // exact
  Expr lo = n.value * ln2[1];
  Uncontracted keep(x);
  Expr r = hi - lo;
  return {n, r, (hi - r) - lo};
}

/// 1 + r exactly, |r| ≤ 1.
inline Pair one_plus(Expr r) { return fast_two_sum(constant(r, r.type(), 1.0), r); }

}  // namespace quern::ir::math
