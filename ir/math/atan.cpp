#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// With a = min(|x|, |y|), b = max(|x|, |y|) the angle is atan(a / b) by one polynomial, or, where
// |y| is the larger, π/2 less that (Cody & Waite, chapter 11; Muller, Elementary Functions, 11.5);
// then the half plane and the sign. All choices are selects.

namespace {
/// Σ c[k]·z^k from the last term on: the terms alternate and hardly fall, so that the sums of the
/// even and of the odd ones would cancel.
template <size_t N>
Expr alternating(Expr z, const double (&c)[N]) {
  Expr sum = constant(z, z.type(), c[N - 1]);
  for (size_t k = N - 1; k-- > 0;) sum = sum * z + c[k];
  return sum;
}

/// atan q, 0 ≤ q ≤ 1.
Expr arc(Expr q) {
  Expr z = q * q;
  Expr p =
      q.type() == Type::f64 ? alternating(z, table::atan_f64) : alternating(z, table::atan_single);
  return (q * z) * p + q;
}

/// π/2 in two parts of the type of `like`.
const auto& right_angle(Expr like) {
  return like.type() == Type::f64 ? table::half_pi_pair : table::half_pi_single;
}

Expr atan2_of(Expr y, Expr x) {
  Expr ax = abs(x), ay = abs(y);
  // Each NaN passes through one of them.
  Expr a = binary(Op::min, ax, ay), b = binary(Op::max, ay, ax);
  Expr zero = constant(x, x.type(), 0.0);
  // 0 / 0 is the direction 0, ∞ / ∞ the direction 1.
  Expr q = select(a == b, select(b == 0.0, zero, 1.0), a / b);
  Expr swapped = ay > ax, left = sign_of(x);
  const auto& right = right_angle(x);
  Expr start = select(swapped, right[0], select(left != 0, 2.0 * right[0], zero));
  Expr plus = bits(zero), minus = bits(constant(x, x.type(), -0.0));
  Expr turn = flip_sign(arc(q), select(swapped, minus, plus) ^ left);
  return flip_sign(start + (start * (right[1] / right[0]) + turn), sign_of(y));
}

/// The angle of (1, x), without what x alone cannot be.
Expr atan_of(Expr x) {
  Expr ax = abs(x);
  Expr angle = arc(min(ax, 1.0) / max(ax, 1.0));
  const auto& right = right_angle(x);
  angle = select(ax > 1.0, right[0] + (right[1] - angle), angle);
  return flip_sign(angle, sign_of(x));
}
}  // namespace

Expr atan2_f32(Expr y, Expr x) { return atan2_of(y, x); }
Expr atan2_f64(Expr y, Expr x) { return atan2_of(y, x); }
Expr atan_f32(Expr x) { return atan_of(x); }
Expr atan_f64(Expr x) { return atan_of(x); }

}  // namespace quern::ir::math
