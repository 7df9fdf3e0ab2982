#include "ir/math/exp_parts.h"
#include "ir/math/functions.h"
#include "ir/math/wide.h"

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

/// For every x and y.
Expr any_pow(Expr x, Expr y) {
  Pair log = wide_log(abs(x));
  // Any |y| > 2^65 gives what 2^65 gives: log |x| is 0 or at least 2^-53.
  Pair e = log * min(max(y, -0x1p65), 0x1p65);
  Expr clamped = min(max(e.hi, -1100.0), 1100.0);
  Expr lo = select(clamped == e.hi, e.lo, 0.0);
  WideExp power = wide_exp({clamped, lo});
  return with_special_cases(x, y, scale(power.value.hi + power.value.lo, power.n));
}
}  // namespace

Expr pow_f64(Expr x, Expr y) {
  // Positive x and a normal result need none of the above. |y| < 2^900 keeps the product finite.
  Pair e = wide_log(decompose(x)) * y;
  Expr plain = is_positive_normal(x) & (abs(y) < 0x1p900) & (abs(e.hi) < 707.0);
  auto usual = [&] {
    ByPower p = by_power(e.hi * table::log2_e, constant(x, Type::f64, 0.0));
    Expr lead = e.hi - p.n * table::ln2_pow[0];  // exact
    Expr second = p.n * table::ln2_pow[1];       // exact
    Expr r = lead - second;
    r = r + (((lead - r) - second) + (e.lo - p.n * table::ln2_pow[2]));
    return float_of(bits(exp_reduced(r)) + p.shift);
  };
  return rarely_else(!plain, [&] { return any_pow(x, y); }, usual);
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
