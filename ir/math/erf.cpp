#include "ir/math/exp_parts.h"
#include "ir/math/functions.h"

namespace quern::ir::math {

// erfc x = F(t) exp(-x²) / (1 + 2x) with a smooth F of t = (x - 3) / (x + 3) for all x ≥ 0
// (Shepherd & Laframboise, Mathematics of Computation 36, 1981). The square and its exponential are
// carried to twice the precision.

namespace {
Expr erfc_positive(Expr x) {
  const bool wide = x.type() == Type::f64;
  Expr c = min(x, wide ? 27.4 : 10.2);
  Expr t = (c - 3.0) / (c + 3.0);
  Expr f = wide ? polynomial(t, table::erfc_f64) : polynomial(t, table::erfc_single);
  Expr high = c * c;
  Expr low = fma(c, c, -high);
  ByLn2 d = by_ln2(-high);
  Expr p =
      d.r * d.r * (wide ? polynomial(d.r, table::exp_f64) : polynomial(d.r, table::exp_single));
  Uncontracted keep(x);
  Pair power = one_plus(d.r);
  Expr rest_of_power = (d.lost - low) * (power.hi + p);
  power = fast_two_sum(power.hi, power.lo + (p + rest_of_power));
  Pair factor = fast_two_sum(constant(x, x.type(), 1.25), f);
  Pair divisor = two_sum(2.0 * c, constant(x, x.type(), 1.0));
  Expr inverse = 1.0 / divisor.hi;
  Expr q = factor.hi * inverse;
  Expr rest = (fma(-q, divisor.hi, factor.hi) + (factor.lo - q * divisor.lo)) * inverse;
  Pair product = two_product(q, power.hi);
  Expr value = product.hi + (product.lo + (q * power.lo + rest * power.hi));
  return scale(value, d.n.digits);
}

/// erf x up to 1/2.
Expr erf_near(Expr x) {
  const bool wide = x.type() == Type::f64;
  const auto& slope = wide ? table::two_over_root_pi : table::two_over_root_pi_single;
  Expr z = x * x;
  Expr p = z * (wide ? polynomial(z, table::erf_f64) : polynomial(z, table::erf_single));
  Pair lead = two_product(x, constant(x, x.type(), slope[0]));
  Expr near = lead.hi + (lead.lo + x * (slope[1] + p));
  // The remainder of a product with a subnormal number has no place.
  Expr tiny = abs(x) < (wide ? 0x1p-960 : 0x1p-96);
  return select(tiny, x * slope[0], near);
}

Expr erfc_of(Expr x) {
  Expr tail = erfc_positive(abs(x));
  Expr far = select(x < 0.0, 2.0 - tail, tail);
  return select(abs(x) < 0.375, 1.0 - erf_near(x), far);
}

Expr erf_of(Expr x) {
  Expr far = flip_sign(1.0 - erfc_positive(abs(x)), sign_of(x));
  return select(abs(x) < 0.5, erf_near(x), far);
}
}  // namespace

Expr erf_f32(Expr x) { return erf_of(x); }
Expr erf_f64(Expr x) { return erf_of(x); }
Expr erfc_f32(Expr x) { return erfc_of(x); }
Expr erfc_f64(Expr x) { return erfc_of(x); }

}  // namespace quern::ir::math
