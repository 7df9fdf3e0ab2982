#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// Up to 1/2 asin is a polynomial; above, asin x = π/2 - 2 asin √((1 - x) / 2), the root carried to
// twice the precision (Cody & Waite, chapter 10; Muller, Elementary Functions, 11.5).

namespace {
struct Arc {
  Expr large;  ///< |x| > 1/2
  Pair angle;  ///< asin |x|, or, where large, asin √((1 - |x|) / 2)
  Pair right;  ///< π/2
};

Arc arc(Expr x) {
  const bool wide = x.type() == Type::f64;
  Expr ax = abs(x);
  Expr large = ax > 0.5;
  Expr z = select(large, 0.5 * (1.0 - ax), ax * ax);  // exact where large
  Expr p = z * (wide ? polynomial(z, table::asin_f64) : polynomial(z, table::asin_single));
  Expr root = sqrt(z);
  Expr error = select(root == 0.0, 0.0, fma(-root, root, z) * (0.5 / root));
  Uncontracted keep(x);
  Expr base = select(large, root, ax);
  Expr rest = select(large, error, 0.0);
  const auto& half_pi = wide ? table::half_pi_pair : table::half_pi_single;
  Expr hi = constant(x, x.type(), half_pi[0]), lo = constant(x, x.type(), half_pi[1]);
  return {large, fast_two_sum(base, rest + base * p), {hi, lo}};
}

Expr asin_of(Expr x) {
  Arc a = arc(x);
  Uncontracted keep(x);
  Pair far = fast_two_sum(a.right.hi, -2.0 * a.angle.hi);
  Expr result =
      select(a.large, far.hi + (far.lo + (a.right.lo - 2.0 * a.angle.lo)), a.angle.hi + a.angle.lo);
  return flip_sign(result, sign_of(x));
}

Expr acos_of(Expr x) {
  Arc a = arc(x);
  Uncontracted keep(x);
  Expr negative = x < 0.0;
  // π/2 ∓ asin |x|, 2 asin √…, π - 2 asin √…
  Expr hi = select(a.large, 2.0 * a.angle.hi, a.angle.hi);
  Expr lo = select(a.large, 2.0 * a.angle.lo, a.angle.lo);
  Expr whole = select(a.large, select(negative, 2.0 * a.right.hi, 0.0), a.right.hi);
  Expr whole_lo = select(a.large, select(negative, 2.0 * a.right.lo, 0.0), a.right.lo);
  Expr adds = a.large ^ negative;
  Pair sum = two_sum(whole, select(adds, hi, -hi));
  return sum.hi + (sum.lo + (whole_lo + select(adds, lo, -lo)));
}
}  // namespace

Expr asin_f32(Expr x) { return asin_of(x); }
Expr asin_f64(Expr x) { return asin_of(x); }
Expr acos_f32(Expr x) { return acos_of(x); }
Expr acos_f64(Expr x) { return acos_of(x); }

// atan x is the angle of (1, x). Beyond 2^60 it is π/2 to the last place.

Expr atan_f32(Expr x) { return atan2_f32(x, constant(x, Type::f32, 1.0)); }
Expr atan_f64(Expr x) {
  Expr bounded = select(abs(x) < 0x1p60, x, flip_sign(constant(x, Type::f64, 0x1p60), sign_of(x)));
  return select(is_nan(x), x, atan2_f64(bounded, constant(x, Type::f64, 1.0)));
}

}  // namespace quern::ir::math
