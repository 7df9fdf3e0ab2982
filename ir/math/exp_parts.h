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

/// n = round(y) as a float, and n + offset where a float has its exponent.
struct ByPower {
  Expr n, shift;
};
/// `offset` is a small integer as a float.
inline ByPower by_power(Expr y, Expr offset) {
  const Format& f = format(y);
  Expr magic = offset + (f.digits == 23 ? 0x1.8p23 : 0x1.8p52);
  Expr t = y + magic;
  Uncontracted keep(y);
  return {t - magic, bits(t) << f.digits};
}

/// exp r for |r| ≤ ln 2 / 2, less than an ulp off.
inline Expr exp_reduced(Expr r) {
  Expr q = r.type() == Type::f64 ? polynomial(r, table::exp_f64) : polynomial(r, table::exp_single);
  return 1.0 + (r + r * r * q);
}

/// x - n ln 2, rounded once or twice.
inline Expr less_ln2(Expr x, Expr n) {
  const auto& ln2 = x.type() == Type::f64 ? table::ln2 : table::ln2_single;
  return (x - n * ln2[0]) - n * ln2[1];
}

/// 1 + r exactly, |r| ≤ 1.
inline Pair one_plus(Expr r) { return fast_two_sum(constant(r, r.type(), 1.0), r); }

}  // namespace quern::ir::math
