#include "ir/math/coefficients.h"
#include "ir/math/exp_parts.h"
#include "ir/math/functions.h"

namespace quern::ir::math {

// exp x = 2^n · exp r, n = round(x / ln 2), r = x - n ln 2 (Cody & Waite, Software Manual for the
// Elementary Functions, 1980, chapter 6; Muller, Elementary Functions, 11.2). Arguments are clamped
// to where the result overflows or vanishes; a NaN passes.

namespace {
template <size_t N>
Expr exp_of(Expr x, const double (&coefficients)[N], double lowest, double highest) {
  ByLn2 d = by_ln2(min(max(x, lowest), highest));
  Expr p = d.r * d.r * polynomial(d.r, coefficients);
  Pair lead = one_plus(d.r);
  return scale(lead.hi + (lead.lo + (d.lost + p)), d.n.digits);
}

// 2^x = 2^n · 2^r, n = round(x): r is exact.

template <size_t N>
Expr exp2_of(Expr x, const double (&coefficients)[N], double lowest, double highest) {
  Expr c = min(max(x, lowest), highest);
  Rounded n = round_to_integer(c);
  Expr r = c - n.value;
  Expr p = r * r * polynomial(r, coefficients);
  Pair lead = one_plus(r * table::ln2_nearest);
  return scale(lead.hi + (lead.lo + p), n.digits);
}

// exp x - 1 = (2^n - 1) + 2^n (exp r - 1), the sum made so that only its last addition rounds
// (after Tang, ACM TOMS 18(2), 1992). It is carried at half its size: 2^n may overflow where the
// result does not.

template <size_t N>
Expr expm1_of(Expr x, const double (&coefficients)[N], double lowest, double highest,
              double identity_below) {
  ByLn2 d = by_ln2(min(max(x, lowest), highest));
  Expr p = d.r * d.r * polynomial(d.r, coefficients);
  Expr power = power_of_two(d.n.digits - 1);
  Uncontracted keep(x);
  Pair whole = two_sum(power, constant(x, x.type(), -0.5));
  Pair lead = fast_two_sum(whole.hi, power * d.r);
  Expr result = 2.0 * (lead.hi + (lead.lo + (whole.lo + power * (d.lost + p))));
  return select(abs(x) < identity_below, x, result);
}
}  // namespace

Expr exp_f32(Expr x) { return exp_of(x, table::exp_single, -104.0, 89.0); }
Expr exp_f64(Expr x) { return exp_of(x, table::exp_f64, -746.0, 710.0); }
Expr exp2_f32(Expr x) { return exp2_of(x, table::exp2_single, -152.0, 129.0); }
Expr exp2_f64(Expr x) { return exp2_of(x, table::exp2_f64, -1078.0, 1025.0); }
Expr expm1_f32(Expr x) { return expm1_of(x, table::exp_single, -20.0, 88.8, 0x1p-26); }
Expr expm1_f64(Expr x) { return expm1_of(x, table::exp_f64, -40.0, 709.8, 0x1p-55); }

}  // namespace quern::ir::math
