#include <cmath>

#include "ir/math/coefficients.h"
#include "ir/math/exp_parts.h"
#include "ir/math/functions.h"

namespace quern::ir::math {

// erfc x = F(t) exp(-x²) / (1 + 2x) with a smooth F of t = (x - 3) / (x + 3) for all x ≥ 0, near
// 5/4 (Shepherd & Laframboise, Mathematics of Computation 36, 1981). erf takes its tail from 7/8
// on, where only its size beside 1 counts and 1 - t serves as the divisor; below erf is a
// polynomial.

namespace {
/// h · exp r · 2^n, the last factor as by_power gives it.
Expr times_exp(Expr h, Expr r, Expr shift) {
  Expr q = r.type() == Type::f64 ? polynomial(r, table::exp_f64) : polynomial(r, table::exp_single);
  return float_of(bits(h + h * (r + r * r * q)) + shift);
}

/// erfc x for x ≥ 1/2 within 4 ulp.
template <size_t N>
Expr erfc_positive(Expr x, double top, const double (&coefficients)[N]) {
  // Keeps a normal number what would not be one beside 2^n.
  const double offset = x.type() == Type::f64 ? 80 : 40;
  Expr c = min(x, top);
  Expr sum = c + 3.0, divisor = 1.0 + 2.0 * c;
  Expr t = c - 3.0, h = constant(x, x.type(), 1.25);
  if (x.type() == Type::f64) {  // both quotients from one division, which is dear
    Expr inverse = 1.0 / (sum * divisor);
    h = (h + polynomial(t * (divisor * inverse), coefficients)) * (sum * inverse);
  } else {
    h = (h + polynomial(t / sum, coefficients)) / divisor;
  }
  // The square is rounded only once n ln 2 is taken from it.
  const auto& ln2 = x.type() == Type::f64 ? table::ln2 : table::ln2_single;
  ByPower p = by_power(c * c * -table::log2_e, constant(x, x.type(), offset));
  Expr r = fma(-c, c, -(p.n * ln2[0])) - p.n * ln2[1];
  return times_exp(h, r, p.shift) * std::exp2(-offset);
}

/// erfc x for x ≥ 7/8 within an ulp of 1.
template <size_t N>
Expr erfc_beside_one(Expr x, double top, const double (&coefficients)[N]) {
  Expr c = min(x, top);
  Expr rest = 6.0 / (c + 3.0);  // 1 - t
  Expr h = rest * polynomial(1.0 - rest, coefficients);
  Expr square = c * c;
  ByPower p = by_power(square * -table::log2_e, constant(x, x.type(), 0.0));
  return times_exp(h, -square - p.n * table::ln2_nearest, p.shift);
}

/// erf x where z = x² is small: the polynomial is (erf x / x - 2/√π) / z.
template <size_t N>
Expr erf_near(Expr x, const double (&coefficients)[N]) {
  Expr z = x * x;
  const auto& slope =
      x.type() == Type::f64 ? table::two_over_root_pi : table::two_over_root_pi_single;
  return x * slope[0] + x * (slope[1] + z * polynomial(z, coefficients));
}

template <size_t N, size_t M>
Expr erfc_of(Expr x, double top, const double (&tail)[N], const double (&small)[M]) {
  Expr ax = abs(x);
  Expr positive = erfc_positive(ax, top, tail);
  Expr far = select(x < 0.0, 2.0 - positive, positive);
  return select(ax >= 0.5, far, 1.0 - erf_near(x, small));
}

template <size_t N, size_t M>
Expr erf_of(Expr x, double top, const double (&tail)[N], const double (&near)[M]) {
  Expr ax = abs(x);
  Expr far = 1.0 - erfc_beside_one(ax, top, tail);
  return flip_sign(select(ax >= 0.875, far, erf_near(ax, near)), sign_of(x));
}
}  // namespace

Expr erf_f32(Expr x) { return erf_of(x, 4.0, table::erfc_low_single, table::erf_single); }
Expr erf_f64(Expr x) { return erf_of(x, 6.0, table::erfc_low_f64, table::erf_f64); }
Expr erfc_f32(Expr x) { return erfc_of(x, 10.2, table::erfc_single, table::erf_small_single); }
Expr erfc_f64(Expr x) { return erfc_of(x, 27.4, table::erfc_f64, table::erf_small_f64); }

}  // namespace quern::ir::math
