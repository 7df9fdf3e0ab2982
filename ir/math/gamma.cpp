#include "ir/math/functions.h"
#include "ir/math/trig_parts.h"
#include "ir/math/wide.h"

namespace quern::ir::math {

// Stirling's series from 10 on, in two parts:
//   log Γ(w) = (w - 1/2) log w - w + log √(2π) + C(w)
// Below, Γ(v) = Γ(v + 10) / (v (v + 1) … (v + 9)). For negative x = -v the reflection Γ(-v) =
// -π / (v sin(πv) Γ(v)). (Muller, Elementary Functions, and Abramowitz & Stegun 6.1.17, 6.1.40.)

namespace {
Pair pair_of(Expr like, const double (&parts)[2]) {
  return {constant(like, Type::f64, parts[0]), constant(like, Type::f64, parts[1])};
}

/// For v = |x|: log Γ(w), and (v + 1) … (v + 9) where w is v + 10, else 1.
struct Shifted {
  Expr low;  ///< v < 10: w = v + 10
  Pair log;
  Expr plain;  ///< w (log w - 1): log Γ(w) where w is huge
  Pair product;
};

Shifted shifted(Expr v) {
  Expr low = v < 10.0;
  auto number = [&](double n) { return constant(v, Type::f64, n); };
  Pair product = two_sum(v, number(1));
  for (int k = 2; k < 10; k++) product = product * two_sum(v, number(k));
  Pair w = two_sum(v, select(low, 10.0, number(0)));
  Pair log_w = wide_log(w.hi);
  Expr inverse = 1.0 / w.hi;
  Expr tail = polynomial(inverse * inverse, table::stirling) * inverse;
  Expr slope = log_w.hi - 0.5 * inverse;
  Uncontracted keep(v);
  Pair main = two_sum(w.hi, number(-0.5)) * log_w;
  Pair sum = two_sum(main.hi, -w.hi);
  Pair with_root = two_sum(sum.hi, number(table::log_root_two_pi[0]));
  Pair all = two_sum(with_root.hi, tail);
  Expr rest =
      (main.lo + sum.lo) + (with_root.lo + table::log_root_two_pi[1]) + (all.lo + w.lo * slope);
  return {low, fast_two_sum(all.hi, rest), w.hi * (log_w.hi - 1.0),
          select(low, product, {number(1), number(0)})};
}

/// sin(πv) = ± magnitude, and whether it is negative.
struct SinPi {
  Pair magnitude;
  Expr negative;
  Expr zero;  ///< v is an integer
};

SinPi sin_pi(Expr v) {
  Expr n = unary(Op::round, v);
  Expr f = v - n;  // exact
  Expr half = 0.5 * n;
  Expr odd = floor(half) != half;
  Expr t = abs(f);
  Expr near = t <= 0.25;
  Pair angle = pair_of(v, table::pi_pair) * select(near, t, 0.5 - t);
  return {select(near, sin_pair(angle), cos_pair(angle)), (f < 0.0) ^ odd, f == 0.0};
}
}  // namespace

Expr tgamma_f64(Expr x) {
  Expr ax = abs(x);
  Expr v = min(ax, 200.0);
  Expr negative = x < 0.0;
  Shifted s = shifted(v);
  SinPi sine = sin_pi(ax);
  WideExp gamma = wide_exp({min(s.log.hi, 1200.0), s.log.lo});
  Expr one = constant(x, Type::f64, 1.0);
  // x > 0: Γ(w) / (P c);  x < 0: π P / (sin(πv) c Γ(w))
  Expr c = select(s.low ^ negative, v, one);
  Pair pi = pair_of(x, table::pi_pair);
  Pair p = s.product * select(negative, pi, Pair{c, constant(x, Type::f64, 0.0)});
  Pair g = select(negative, (sine.magnitude * c) * gamma.value, gamma.value);
  Pair ratio = select(negative, p, g) / select(negative, g, p);
  Expr magnitude = scale(ratio.hi + ratio.lo, select(negative, -gamma.n, gamma.n));
  Expr falls = negative & !sine.negative;
  Expr result = select(falls, -magnitude, magnitude);
  result = select(ax < 0x1p-1000, 1.0 / x, result);
  result = select(x == infinity, infinity, result);
  Expr pole = negative & (sine.zero | (ax == infinity));
  return select(pole | is_nan(x), not_a_number, result);
}

Expr lgamma_f64(Expr x) {
  Expr ax = abs(x);
  Expr negative = x < 0.0;
  Expr tiny = ax < 0x1p-60;
  Expr v = select(tiny | (ax == infinity), 1.0, ax);
  Shifted s = shifted(v);
  SinPi sine = sin_pi(ax);
  Expr one = constant(x, Type::f64, 1.0), zero = constant(x, Type::f64, 0.0);
  // x > 0: log Γ(w) - log(P c);  x < 0: log(π P / (sin(πv) c)) - log Γ(w)
  Expr c = select(s.low ^ negative, v, one);
  Pair p = s.product * select(negative, pair_of(x, table::pi_pair), Pair{c, zero});
  Pair divisor = select(negative, sine.magnitude * c, Pair{one, zero});
  Pair quotient = p / divisor;
  quotient = select(tiny, Pair{ax, zero}, quotient);
  Pair log = wide_log(quotient.hi);
  log = fast_two_sum(log.hi, log.lo + quotient.lo / quotient.hi);
  Pair gamma = select(tiny, Pair{zero, zero}, s.log);
  Pair sum = two_sum(gamma.hi, -log.hi);
  Expr difference = sum.hi + (sum.lo + (gamma.lo - log.lo));
  Expr result = select(negative & !tiny, -difference, difference);

  Expr d1 = x - 1.0, d2 = x - 2.0;
  Pair slope =
      fast_two_sum(constant(x, Type::f64, 0.5), polynomial(x - 1.5625, table::lgamma_middle));
  Pair middle = two_product(d1, d2) * slope;
  result = select((x >= 0.875) & (x < 2.25), middle.hi + middle.lo, result);
  result = select((x == 1.0) | (x == 2.0), 0.0, result);
  result = select(x > 0x1p60, s.plain, result);
  Expr pole = (ax == infinity) | (ax == 0.0) | (negative & sine.zero);
  result = select(pole, infinity, result);
  return select(is_nan(x), not_a_number, result);
}

Expr tgamma_f32(Expr x) { return convert(tgamma_f64(convert(x, Type::f64)), Type::f32); }
Expr lgamma_f32(Expr x) { return convert(lgamma_f64(convert(x, Type::f64)), Type::f32); }

}  // namespace quern::ir::math
