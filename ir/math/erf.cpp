#include <cmath>

#include "ir/math/coefficients.h"
#include "ir/math/exp_parts.h"
#include "ir/math/functions.h"

namespace quern::ir::math {

// erf x = 1 - exp(-x q(x)): -log(erfc x) is smooth on all of x ≥ 0, and expm1 keeps it exact
// beside 0. A slope of two parts leaves one rounding of the exponent there.
//
// erfc x = F(u) exp(-x²) / (x + k) with a smooth F of u = x / (x + k) for all x ≥ 0 (after Shepherd
// & Laframboise, Mathematics of Computation 36, 1981). u is exact beside 0, where F is steepest.

namespace {
/// (exp r - 1) / r - 1.
Expr exp_rest(Expr r) {
  return r *
         (r.type() == Type::f64 ? polynomial(r, table::exp_f64) : polynomial(r, table::exp_single));
}

template <size_t N>
Expr erf_of(Expr x, double top, const double (&coefficients)[N]) {
  const auto& slope =
      x.type() == Type::f64 ? table::two_over_root_pi : table::two_over_root_pi_single;
  Expr c = min(abs(x), top);
  Expr y =
      fma(-c, constant(x, x.type(), slope[0]), -(c * (slope[1] + c * polynomial(c, coefficients))));
  ByPower p = by_power(y * table::log2_e, constant(x, x.type(), 0.0));
  // One product of n will do: it errs where little is left of 1.
  Expr r = y - p.n * table::ln2_nearest;
  Expr power = float_of(bits(constant(x, x.type(), 1.0)) + p.shift);
  return flip_sign((1.0 - power) - power * (r + r * exp_rest(r)), sign_of(x));
}

/// Within 4 ulp.
template <size_t N>
Expr erfc_of(Expr x, double top, const double (&coefficients)[N]) {
  // Keeps a normal number what would not be one beside 2^n.
  const double offset = x.type() == Type::f64 ? 80 : 40;
  Expr c = min(abs(x), top);
  Expr sum = c + 4.0, inverse = 1.0 / sum;
  Expr h = inverse * (0.75 + polynomial(c * inverse - 0.5, coefficients));
  // What the inverse lacks of 1 / (c + 4), relative to it. It changes u by as much: (1 - u)² of
  // it is nearly what h lacks.
  Expr lack = fma(-sum, inverse, constant(x, x.type(), 1.0)) - (c - (sum - 4.0)) * inverse;
  Expr rest = 4.0 * inverse;
  lack = lack * (rest * rest);
  // The square is rounded only once n ln 2 is taken from it.
  const auto& ln2 = x.type() == Type::f64 ? table::ln2 : table::ln2_single;
  ByPower p = by_power(c * c * -table::log2_e, constant(x, x.type(), offset));
  Expr r = fma(-c, c, -(p.n * ln2[0])) - p.n * ln2[1];
  Expr power = float_of(bits(constant(x, x.type(), 1.0)) + p.shift);
  Expr positive = (h + h * (r + (lack + r * exp_rest(r)))) * power * std::exp2(-offset);
  return select(x < 0.0, 2.0 - positive, positive);
}
}  // namespace

Expr erf_f32(Expr x) { return erf_of(x, 4.0, table::erf_single); }
Expr erf_f64(Expr x) { return erf_of(x, 6.0, table::erf_f64); }
Expr erfc_f32(Expr x) { return erfc_of(x, 10.2, table::erfc_single); }
Expr erfc_f64(Expr x) { return erfc_of(x, 27.4, table::erfc_f64); }

}  // namespace quern::ir::math
