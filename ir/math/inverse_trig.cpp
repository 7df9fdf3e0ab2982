#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// Up to 1/2 asin is a polynomial; above, asin x = π/2 - 2 asin √((1 - x) / 2) (Cody & Waite,
// chapter 10; Muller, Elementary Functions, 11.5).

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
  Uncontracted keep(x);
  Expr base = select(large, sqrt(z), ax);
  const auto& half_pi = wide ? table::half_pi_pair : table::half_pi_single;
  Expr hi = constant(x, x.type(), half_pi[0]), lo = constant(x, x.type(), half_pi[1]);
  return {large, fast_two_sum(base, base * p), {hi, lo}};
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

}  // namespace quern::ir::math
