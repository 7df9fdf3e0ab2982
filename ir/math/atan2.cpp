#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// With a = min(|x|, |y|), b = max(|x|, |y|) the angle is k·π/4 ± atan q, where q = a / b, or, where
// that exceeds tan π/8, (a - b) / (a + b) (Cody & Waite, chapter 11; Muller, 11.5). All choices are
// selects: k counts the eighths of the circle.

namespace {
struct Reduced {
  Expr a, b;     ///< 0 ≤ a ≤ b, b > 0
  Expr folded;   ///< q = (a - b) / (a + b), else a / b
  Expr eighths;  ///< k: 0 … 4, f64
  Expr sign;     ///< sign bit of ± atan q
};

Reduced reduce(Expr y, Expr x) {
  Expr zero = constant(x, Type::f64, 0.0), one = constant(x, Type::f64, 1.0);
  Expr ax = abs(x), ay = abs(y);
  Expr swapped = ay > ax;
  Expr a = select(swapped, ax, ay), b = select(swapped, ay, ax);
  // Infinities keep their direction as 0 / 1 or 1 / 1; 0 / 0 becomes the direction 0 / 1.
  Expr far = b == infinity;
  a = select(far, select(a == infinity, one, zero), a);
  b = select(far | (b == 0.0), one, b);
  Expr folded = a > table::tan_eighth_pi * b;
  Expr k = select(folded, one, zero);
  k = select(swapped, 2.0 - k, k);
  Expr left = sign_of(x);
  k = select(left != 0, 4.0 - k, k);
  Expr plus = constant(x, Type::u64, 0), minus = constant(x, Type::u64, sign_f64);
  return {a, b, folded, k, select(swapped, minus, plus) ^ left};
}

Expr finish(Expr y, Expr x, Expr angle) {
  return select(is_nan(x) | is_nan(y), not_a_number, flip_sign(angle, sign_of(y)));
}
}  // namespace

Expr atan2_f64(Expr y, Expr x) {
  // Powers of two keep the sum from overflowing and the products of the quotient's correction from
  // underflowing. Beyond 2^1020 an `a` that this makes subnormal no longer matters.
  Expr one = constant(x, Type::f64, 1.0), zero = constant(x, Type::f64, 0.0);
  Expr largest = select(abs(y) > abs(x), abs(y), abs(x));
  Expr factor = select(largest > 0x1p1020, 0x1p-4, select(largest < 0x1p100, 0x1p900, one));
  Reduced r = reduce(y * factor, x * factor);

  // q to twice the precision, from the remainder of the division
  Pair difference = two_sum(r.a, -r.b), sum = two_sum(r.a, r.b);
  Pair n{select(r.folded, difference.hi, r.a), select(r.folded, difference.lo, zero)};
  Pair d{select(r.folded, sum.hi, r.b), select(r.folded, sum.lo, zero)};
  Expr q = n.hi / d.hi;
  Expr z = q * q;
  Expr p = polynomial(z, table::atan_f64);

  Uncontracted keep(x);
  Pair product = two_product(q, d.hi);
  Expr rest = (((n.hi - product.hi) - product.lo) + (n.lo - q * d.lo)) / d.hi;
  Pair w = fast_two_sum(q, (rest - rest * z) + q * z * p);
  Pair angle = fast_two_sum(r.eighths * table::quarter_pi[0], flip_sign(w.hi, r.sign));
  Expr tail = flip_sign(w.lo, r.sign) + r.eighths * table::quarter_pi[1];
  return finish(y, x, angle.hi + (angle.lo + tail));
}

Expr atan2_f32(Expr y, Expr x) {
  Expr wy = convert(y, Type::f64), wx = convert(x, Type::f64);
  Reduced r = reduce(wy, wx);
  Expr q = select(r.folded, r.a - r.b, r.a) / select(r.folded, r.a + r.b, r.b);
  Expr z = q * q;
  Expr w = q * (1.0 + z * polynomial(z, table::atan_f32));
  Expr angle = r.eighths * (table::quarter_pi[0] + table::quarter_pi[1]) + flip_sign(w, r.sign);
  return convert(finish(wy, wx, angle), Type::f32);
}

}  // namespace quern::ir::math
