#include <cmath>

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

// With |x| = n ln 2 + r and P = 2^n / 2, M = 2^-n / 2
//   cosh x = (P + M) cosh r + (P - M) sinh r
//   sinh x = (P - M) cosh r + (P + M) sinh r
// P ± M are exact or M does not count. Where P would overflow though the result does not, all is
// carried at a quarter of its size; that is rare.

Expr sinh_or_cosh(Expr x, bool is_sinh) {
  Expr ax = abs(x);
  auto of = [&](Expr c, int quarter) {
    ByLn2 d = by_ln2(c);
    const int bias = format(x).bias;
    Expr p = power_of_two(d.n.digits - (1 + quarter));
    Expr m = power_of_two(max(-1 - quarter - d.n.digits, -bias));  // 0 where it would be subnormal
    Expr same = p + m, opposite = p - m;
    Expr even = is_sinh ? opposite : same, odd = is_sinh ? same : opposite;
    return even + (even * cosh_tail(d.r) + odd * (d.r + (sinh_tail(d.r) + d.lost)));
  };
  auto rare = [&] { return 4.0 * of(min(ax, choose_by_type(x, 89.5, 710.6)), 2); };
  auto usual = [&] { return of(ax, 0); };
  return rarely_else(!(ax <= choose_by_type(x, 88.0, 709.0)), rare, usual);
}

Expr sinh_of(Expr x) { return flip_sign(sinh_or_cosh(x, true), sign_of(x)); }

// tanh is a polynomial below 3/4 and 1 - u above, with u = 2 / (e^2|x| + 1); 1 / cosh² is u (2 - u).
// Both divide by a part of e^2|x| + 1, so that the power is finite until u is 0.

Expr one_less_tanh(Expr ax) {
  const double down = choose_by_type(ax, -32, -60), part = std::exp2(down);
  Expr twice = 2.0 * min(ax, choose_by_type(ax, 54.0, 374.0));
  ByPower p = by_power(twice * table::log2_e, constant(ax, ax.type(), down));
  Expr power = float_of(bits(exp_reduced(less_ln2(twice, p.n))) + p.shift);
  return 2.0 * part / (power + part);
}

Expr tanh_of(Expr x) {
  Expr ax = abs(x);
  Expr z = ax * ax;
  Expr near = ax + ax * (z * (x.type() == Type::f64 ? polynomial(z, table::tanh_f64)
                                                    : polynomial(z, table::tanh_single)));
  Expr far = 1.0 - one_less_tanh(ax);
  return flip_sign(select(ax >= 0.75, far, near), sign_of(x));
}

Expr sech2_of(Expr x) {
  Expr u = one_less_tanh(abs(x));
  return select(x == x, u * (2.0 - u), x);  // the exponent is added to bits, also to those of a NaN
}

// asinh |x| = log1p(|x| + (√(1 + x²) - 1)), the bracket as x² / (1 + √(1 + x²)); acosh x =
// log1p(t + √(2t + t²)), t = x - 1. Where 1 / x² vanishes beside 1 both are log x + ln 2.

Expr asinh_of(Expr x) {
  Expr ax = abs(x);
  auto rare = [&] {
    Expr large = log_of_twice(ax);
    return select(ax < infinity, large, ax);
  };
  auto usual = [&] {
    Expr square = ax * ax;
    Expr w = square / (1.0 + sqrt(1.0 + square));
    Pair y = fast_two_sum(ax, w);
    return log1p_of(y.hi, y.lo);
  };
  Expr far = !(ax < choose_by_type(x, 0x1p30, 0x1p60));
  return flip_sign(rarely_else(far, rare, usual), sign_of(x));
}

Expr acosh_of(Expr x) {
  auto rare = [&] {
    Expr large = log_of_twice(x);
    Expr result = select(x < infinity, large, x);
    return select(x < 1.0, not_a_number, result);
  };
  auto usual = [&] {
    Expr t = x - 1.0;  // exact up to 2^24 or 2^53
    Expr root = sqrt(t * t + 2.0 * t);
    Pair y = two_sum(t, root);
    return log1p_of(y.hi, y.lo);
  };
  return rarely_else(!((x >= 1.0) & (x < choose_by_type(x, 0x1p30, 0x1p60))), rare, usual);
}

// With q = (1 + |x|) / (1 - |x|) = 2^k m, atanh |x| = log(q) / 2 = k ln 2 / 2 + atanh s where
// s = (m - 1) / (m + 1), whose two terms come without a quotient of their own: one division. k is
// read from the difference of the bits of 1 + |x| and 1 - |x|, which is about 2^digits log2 q
// (Mitchell, 1962); it is 0 up to 1/4, where s is x, and |s| ≤ 0.28.

Expr atanh_of(Expr x) {
  const Format& f = format(x);
  Expr ax = abs(x);
  auto usual = [&] {
    Pair above = fast_two_sum(constant(x, x.type(), 1.0), ax);
    Pair below = fast_two_sum(constant(x, x.type(), 1.0), -ax);
    Expr quarter = constant(bits(x), f.word, uint64_t(1) << (f.digits - 2));
    Expr k = (bits(above.hi) - bits(below.hi) + quarter) >> f.digits;
    Expr power = float_of((k + f.bias) << f.digits);
    Expr difference = (above.hi - power * below.hi) + (above.lo - power * below.lo);
    Expr sum = (above.hi + power * below.hi) + (above.lo + power * below.lo);
    Expr s = difference / sum;
    Expr z = s * s;
    Expr tail = s * (z * (x.type() == Type::f64 ? polynomial(z, table::atanh_f64)
                                                : polynomial(z, table::atanh_single)));
    const auto& ln2 = x.type() == Type::f64 ? table::ln2 : table::ln2_single;
    const double digits = x.type() == Type::f64 ? 0x1p52 : 0x1p23;
    Expr number = float_of(k | bits(constant(x, x.type(), digits))) - digits;
    return number * (0.5 * ln2[0]) + (s + (tail + number * (0.5 * ln2[1])));
  };
  auto rare = [&] { return select(ax == 1.0, infinity, constant(x, x.type(), not_a_number)); };
  return flip_sign(rarely_else(!(ax < 1.0), rare, usual), sign_of(x));
}
}  // namespace

Expr sinh_f32(Expr x) { return sinh_of(x); }
Expr sinh_f64(Expr x) { return sinh_of(x); }
Expr cosh_f32(Expr x) { return sinh_or_cosh(x, false); }
Expr cosh_f64(Expr x) { return sinh_or_cosh(x, false); }
Expr tanh_f32(Expr x) { return tanh_of(x); }
Expr tanh_f64(Expr x) { return tanh_of(x); }
Expr sech2_f32(Expr x) { return sech2_of(x); }
Expr sech2_f64(Expr x) { return sech2_of(x); }
Expr asinh_f32(Expr x) { return asinh_of(x); }
Expr asinh_f64(Expr x) { return asinh_of(x); }
Expr acosh_f32(Expr x) { return acosh_of(x); }
Expr acosh_f64(Expr x) { return acosh_of(x); }
Expr atanh_f32(Expr x) { return atanh_of(x); }
Expr atanh_f64(Expr x) { return atanh_of(x); }

}  // namespace quern::ir::math
