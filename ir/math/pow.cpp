#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// |x|^y = exp(y · log |x|), the logarithm carried to more bits than the result so that the product,
// up to 745, keeps an absolute error far below its last place (Cody & Waite, chapter 12; Muller,
// 11.7). Signs and special cases are selects after C's Annex F.

namespace {
/// What the magnitude |x|^y becomes for this x and y.
Expr with_special_cases(Expr x, Expr y, Expr magnitude) {
  Expr ax = abs(x);
  Expr zero = constant(x, Type::f64, 0.0);
  Expr inf = constant(x, Type::f64, infinity);
  Expr falls = y < 0.0;
  Expr r = select(ax == 0.0, select(falls, inf, zero), magnitude);
  r = select(ax == infinity, select(falls, zero, inf), r);
  Expr integral = floor(y) == y;
  Expr half = y * 0.5;
  Expr odd = integral & (floor(half) != half) & (abs(y) < 0x1p53);
  r = flip_sign(r, select(odd, sign_of(x), constant(x, Type::u64, 0)));
  Expr undefined = (x < 0.0) & (ax < infinity) & !integral;
  r = select(undefined | is_nan(x) | is_nan(y), not_a_number, r);
  Expr endless = abs(y) == infinity;
  return select((y == 0.0) | (x == 1.0) | (endless & (x == -1.0)), 1.0, r);
}

/// log(m) for m in [√½, √2) with a relative error of about 2^-66: 2 s (1 + z/3 + z²/5 + z³ P(z)),
/// s = (m - 1) / (m + 1), z = s².
Pair log_pair(Expr m) {
  Uncontracted keep(m);
  Expr one = constant(m, Type::f64, 1.0);
  Expr f = m - 1.0;  // exact
  Pair g = two_sum(m, one);
  Expr quotient = f / g.hi;
  Pair product = two_product(quotient, g.hi);
  Expr rest = (((f - product.hi) - product.lo) - quotient * g.lo) / g.hi;
  Pair s = fast_two_sum(quotient, rest);
  Pair z = s * s;
  Expr tail = z.hi * polynomial(z.hi, table::log_pow_f64);
  Pair c5{constant(m, Type::f64, table::fifth[0]), constant(m, Type::f64, table::fifth[1])};
  Pair c3{constant(m, Type::f64, table::third[0]), constant(m, Type::f64, table::third[1])};
  Pair sum = add_smaller(c5, {tail, constant(m, Type::f64, 0.0)});
  sum = add_smaller(c3, sum * z);
  Pair twice{s.hi * 2.0, s.lo * 2.0};
  return add_smaller(twice, twice * (sum * z));
}
}  // namespace

Expr pow_f64(Expr x, Expr y) {
  Decomposed d = decompose_any(abs(x));
  Uncontracted keep(x);
  Expr zero = constant(x, Type::f64, 0.0);
  // log |x| = k ln 2 + log m
  Pair k1 = fast_two_sum(d.k * table::ln2_pow[0], d.k * table::ln2_pow[1]);  // both products exact
  Pair whole{k1.hi, k1.lo + d.k * table::ln2_pow[2]};
  Pair part = log_pair(d.m);
  Pair sum = two_sum(whole.hi, part.hi);
  Pair log = fast_two_sum(sum.hi, sum.lo + (whole.lo + part.lo));

  // Any |y| > 2^65 gives what 2^65 gives: log |x| is 0 or at least 2^-53.
  Pair e = log * min(max(y, -0x1p65), 0x1p65);
  Expr clamped = min(max(e.hi, -1100.0), 1100.0);
  Expr lo = select(clamped == e.hi, e.lo, zero);

  // exp(e) = 2^n exp(r), r in two parts
  Rounded n = round_to_integer(clamped * table::log2_e);
  Expr r0 = clamped - n.value * table::ln2_pow[0];  // exact
  Pair r = two_sum(r0, -(n.value * table::ln2_pow[1]));
  r = fast_two_sum(r.hi, r.lo + (lo - n.value * table::ln2_pow[2]));
  Expr p = r.hi * r.hi * polynomial(r.hi, table::exp_f64);
  Pair one = fast_two_sum(constant(x, Type::f64, 1.0), r.hi);
  Expr value = one.hi + (one.lo + (r.lo + p));
  return with_special_cases(x, y, scale(value, n.digits));
}

Expr pow_f32(Expr x, Expr y) {
  Expr wx = convert(x, Type::f64), wy = convert(y, Type::f64);
  Decomposed d = decompose(abs(wx));
  Expr s = (d.m - 1.0) / (d.m + 1.0);
  Expr z = s * s;
  Expr log =
      d.k * (table::ln2[0] + table::ln2[1]) + s * (2.0 + z * polynomial(z, table::log_pow_f32));
  Expr e = min(max(wy * log, -200.0), 200.0);
  Rounded n = round_to_integer(e * table::log2_e);
  Expr r = (e - n.value * table::ln2[0]) - n.value * table::ln2[1];
  Expr value = 1.0 + (r + r * r * polynomial(r, table::exp_f32));
  Expr magnitude = value * bitcast((n.digits + 1023) << 52, Type::f64);
  return convert(with_special_cases(wx, wy, magnitude), Type::f32);
}

}  // namespace quern::ir::math
