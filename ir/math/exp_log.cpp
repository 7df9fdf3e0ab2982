#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// exp x = 2^n · exp r, n = round(x / ln 2), r = x - n ln 2 (Cody & Waite, Software Manual for the
// Elementary Functions, 1980, chapter 6; Muller, Elementary Functions, 11.2). Arguments are clamped
// to where the result overflows or vanishes; a NaN passes.

Expr exp_f64(Expr x) {
  Expr c = min(max(x, -746.0), 710.0);
  Rounded n = round_to_integer(c * table::log2_e);
  Expr hi = c - n.value * table::ln2[0];  // exact
  Expr lo = n.value * table::ln2[1];
  Expr r = hi - lo;
  Expr p = r * r * polynomial(r, table::exp_f64);
  Uncontracted keep(x);
  Expr lost = (hi - r) - lo;  // the rounding of r
  Pair lead = fast_two_sum(constant(x, Type::f64, 1.0), r);
  return scale(lead.hi + (lead.lo + (lost + p)), n.digits);
}

Expr exp_f32(Expr x) {
  Expr c = min(max(convert(x, Type::f64), -104.0), 89.0);
  Rounded n = round_to_integer(c * table::log2_e);
  Expr r = (c - n.value * table::ln2[0]) - n.value * table::ln2[1];
  Expr y = 1.0 + (r + r * r * polynomial(r, table::exp_f32));
  return convert(y * bitcast((n.digits + 1023) << 52, Type::f64), Type::f32);
}

// log x = k ln 2 + log(1 + f) with 1 + f in [√½, √2). With s = f / (2 + f),
// log(1 + f) = 2 atanh s = f - s (f - R), R = 2 atanh(s) / s - 2, written so that the large terms f
// and f²/2 enter unrounded by the polynomial (Tang, ACM TOMS 16(4), 1990; Muller, 4.2).

namespace {
Expr special_cases(Expr x, Expr result) {
  result = select(x == infinity, infinity, result);
  result = select(x == 0.0, -infinity, result);
  return select((x < 0.0) | is_nan(x), not_a_number, result);
}
}  // namespace

Expr log_f64(Expr x) {
  Decomposed d = decompose_any(x);
  Expr f = d.m - 1.0;  // exact
  Expr s = f / (2.0 + f);
  Expr z = s * s;
  Expr r = z * polynomial(z, table::log_f64);
  Expr square = 0.5 * f * f;
  Expr result = d.k * table::ln2[0] - ((square - (s * (square + r) + d.k * table::ln2[1])) - f);
  return special_cases(x, result);
}

Expr log_f32(Expr x) {
  Expr wide = convert(x, Type::f64);  // subnormals become normal
  Decomposed d = decompose(wide);
  Expr s = (d.m - 1.0) / (d.m + 1.0);
  Expr z = s * s;
  Expr result =
      d.k * (table::ln2[0] + table::ln2[1]) + s * (2.0 + z * polynomial(z, table::log_f32));
  return convert(special_cases(wide, result), Type::f32);
}

}  // namespace quern::ir::math
