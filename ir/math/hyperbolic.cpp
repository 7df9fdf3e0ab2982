#include "ir/math/exp_parts.h"
#include "ir/math/functions.h"
#include "ir/math/log_parts.h"

namespace quern::ir::math {

namespace {
/// Constants that differ by type.
double choose_by_type(Expr x, double f32, double f64) { return x.type() == Type::f64 ? f64 : f32; }

Expr cosh_tail(Expr r) {
  Expr z = r * r;
  return z * (r.type() == Type::f64 ? polynomial(z, table::cosh_f64)
                                    : polynomial(z, table::cosh_single));
}
Expr sinh_tail(Expr r) {
  Expr z = r * r;
  return r * (z * (r.type() == Type::f64 ? polynomial(z, table::sinh_f64)
                                         : polynomial(z, table::sinh_single)));
}

// With |x| = n ln 2 + r and P = 2^n, M = 2^-n
//   2 cosh x = (P + M) cosh r + (P - M) sinh r
//   2 sinh x = (P - M) cosh r + (P + M) sinh r
// P ± M and P r are exact, and the two large terms are summed exactly, so that only the last
// addition rounds. All is carried at a quarter of its size: P may overflow where the result does
// not.

Expr sinh_or_cosh(Expr x, bool is_sinh) {
  Expr c = min(abs(x), choose_by_type(x, 89.5, 710.6));
  ByLn2 d = by_ln2(c);
  const int least = 3 - format(x).bias;
  Expr p = power_of_two(d.n.digits - 2);
  Expr m = power_of_two(max(-2 - d.n.digits, least));
  Uncontracted keep(x);
  Pair same = fast_two_sum(p, m), opposite = fast_two_sum(p, -m);
  Pair even = is_sinh ? opposite : same, odd = is_sinh ? same : opposite;
  Expr rest = m * d.r;
  Pair lead = fast_two_sum(even.hi, p * d.r);
  Expr tail = even.hi * cosh_tail(d.r) + odd.hi * (sinh_tail(d.r) + d.lost) + even.lo;
  return 2.0 * (lead.hi + (lead.lo + ((is_sinh ? rest : -rest) + tail)));
}

Expr sinh_of(Expr x) {
  Expr ax = abs(x);
  Expr result = select(ax < choose_by_type(x, 0x1p-14, 0x1p-28), ax, sinh_or_cosh(x, true));
  return flip_sign(result, sign_of(x));
}

// Below 3/4 a polynomial, above 1 - 2 / (e^2x + 1).

Expr tanh_of(Expr x) {
  Expr ax = abs(x);
  Expr z = ax * ax;
  Expr near = ax + ax * (z * (x.type() == Type::f64 ? polynomial(z, table::tanh_f64)
                                                    : polynomial(z, table::tanh_single)));
  ByLn2 d = by_ln2(2.0 * min(ax, choose_by_type(x, 10.0, 20.0)));
  Expr p = d.r * d.r *
           (x.type() == Type::f64 ? polynomial(d.r, table::exp_f64)
                                  : polynomial(d.r, table::exp_single));
  Expr power = power_of_two(d.n.digits);
  // e^2x + 1 = (2^n + 1) + 2^n (exp r - 1)
  Expr sum = (power + 1.0) + power * (d.r + (d.lost + p));
  Expr far = 1.0 - 2.0 / sum;
  return flip_sign(select(ax < 0.75, near, far), sign_of(x));
}

// asinh |x| = log1p(|x| + (√(1 + x²) - 1)), the bracket as x² / (1 + √(1 + x²)); acosh x =
// log1p(t + √(2t + t²)), t = x - 1. Where 1 / x² vanishes beside 1 both are log x + ln 2.

Expr asinh_of(Expr x) {
  Expr ax = abs(x);
  Expr far = ax >= choose_by_type(x, 0x1p30, 0x1p60);
  Expr square = ax * ax;
  Expr w = square / (1.0 + sqrt(1.0 + square));
  Pair y = fast_two_sum(ax, w);
  Expr zero = constant(x, x.type(), 0.0);
  Expr result = log1p_of(select(far, ax, y.hi), select(far, zero, y.lo), select(far, 1.0, zero));
  result = select(ax < choose_by_type(x, 0x1p-14, 0x1p-28), ax, result);
  return flip_sign(select(ax < infinity, result, ax), sign_of(x));
}

Expr acosh_of(Expr x) {
  Expr far = x >= choose_by_type(x, 0x1p30, 0x1p60);
  Expr t = x - 1.0;  // exact up to 2^24 or 2^53
  Expr root = sqrt(t * t + 2.0 * t);
  Pair y = two_sum(t, root);
  Expr zero = constant(x, x.type(), 0.0);
  Expr result = log1p_of(select(far, x, y.hi), select(far, zero, y.lo), select(far, 1.0, zero));
  result = select(x == 1.0, 0.0, result);
  result = select(x < infinity, result, x);
  return select(x < 1.0, not_a_number, result);
}

// atanh |x| = log1p(2|x| / (1 - |x|)) / 2, the quotient with its remainder.

/// a / b to twice the precision, b in two parts.
Pair divide(Expr a, Pair b) {
  Uncontracted keep(a);
  Expr inverse = 1.0 / b.hi;
  Expr quotient = a * inverse;
  Pair product = two_product(quotient, b.hi);
  Expr rest = ((a - product.hi) - product.lo) - quotient * b.lo;
  return {quotient, rest * inverse};
}

Expr atanh_of(Expr x) {
  Expr ax = abs(x);
  Pair y = divide(2.0 * ax, two_sum(constant(x, x.type(), 1.0), -ax));
  Expr result = 0.5 * log1p_of(y.hi, y.lo, constant(x, x.type(), 0.0));
  result = select(ax < choose_by_type(x, 0x1p-14, 0x1p-28), ax, result);
  result = select(ax == 1.0, infinity, result);
  result = select((ax > 1.0) | is_nan(x), not_a_number, result);
  return flip_sign(result, sign_of(x));
}
}  // namespace

Expr sinh_f32(Expr x) { return sinh_of(x); }
Expr sinh_f64(Expr x) { return sinh_of(x); }
Expr cosh_f32(Expr x) { return sinh_or_cosh(x, false); }
Expr cosh_f64(Expr x) { return sinh_or_cosh(x, false); }
Expr tanh_f32(Expr x) { return tanh_of(x); }
Expr tanh_f64(Expr x) { return tanh_of(x); }
Expr asinh_f32(Expr x) { return asinh_of(x); }
Expr asinh_f64(Expr x) { return asinh_of(x); }
Expr acosh_f32(Expr x) { return acosh_of(x); }
Expr acosh_f64(Expr x) { return acosh_of(x); }
Expr atanh_f32(Expr x) { return atanh_of(x); }
Expr atanh_f64(Expr x) { return atanh_of(x); }

}  // namespace quern::ir::math
