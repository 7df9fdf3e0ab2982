#pragma once
// Logarithm and exponential in f64 with results in two parts: for functions whose result hangs on
// more bits of them than it has itself.
#include "ir/math/coefficients.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

/// a / b with both quotient and remainder.
inline Pair operator/(Pair a, Pair b) {
  Uncontracted keep(a.hi);
  Expr inverse = 1.0 / b.hi;
  Expr q = a.hi * inverse;
  Expr rest = fma(-q, b.hi, a.hi) + (a.lo - q * b.lo);
  return fast_two_sum(q, rest * inverse);
}

inline Pair select(Expr c, Pair a, Pair b) {
  return {select(c, a.hi, b.hi), select(c, a.lo, b.lo)};
}

/// log x for positive finite x = 2^k m, with a relative error of about 2^-64: k ln 2 + 2 s (1 + z/3
/// + z²/5 + z³ P(z)), x = 2^k m, s = (m - 1) / (m + 1), z = s² (Muller, Elementary Functions, 4.2).
inline Pair wide_log(Decomposed d) {
  Expr x = d.m;
  Expr one = constant(x, Type::f64, 1.0);
  Expr f = d.m - 1.0;  // exact
  Pair g = two_sum(d.m, one);
  Expr inverse = 1.0 / g.hi;
  Expr quotient = f * inverse;
  Pair s = fast_two_sum(quotient, (fma(-quotient, g.hi, f) - quotient * g.lo) * inverse);
  Pair z = two_product(s.hi, s.hi);
  Expr small = z.hi * z.hi * (table::fifth[0] + z.hi * polynomial(z.hi, table::log_pow_f64));
  Uncontracted keep(x);
  Expr z_lo = z.lo + 2.0 * (s.hi * s.lo);
  Pair t = two_product(z.hi, constant(x, Type::f64, table::third[0]));
  t = fast_two_sum(t.hi, t.lo + (z_lo * table::third[0] + (z.hi * table::third[1] + small)));
  Pair twice{2.0 * s.hi, 2.0 * s.lo};
  Pair bend = two_product(twice.hi, t.hi);
  Pair part = fast_two_sum(twice.hi, bend.hi);
  Expr part_lo = part.lo + (twice.lo + (bend.lo + (twice.hi * t.lo + twice.lo * t.hi)));
  Pair k = fast_two_sum(d.k * table::ln2_pow[0], d.k * table::ln2_pow[1]);  // both products exact
  Pair sum = two_sum(k.hi, part.hi);
  return fast_two_sum(sum.hi, sum.lo + ((k.lo + d.k * table::ln2_pow[2]) + part_lo));
}

inline Pair wide_log(Expr x) { return wide_log(decompose_any(x)); }

/// exp e = value · 2^n for |e| ≤ 1200, value in [√½, √2] with a relative error of about 2^-57.
struct WideExp {
  Pair value;
  Expr n;  ///< i64
};
inline WideExp wide_exp(Pair e) {
  Rounded n = round_to_integer(e.hi * table::log2_e);
  Expr r0 = e.hi - n.value * table::ln2_pow[0];  // exact
  Expr second = n.value * table::ln2_pow[1];     // exact
  Pair r = two_sum(r0, -second);
  Expr rest = e.lo - n.value * table::ln2_pow[2];
  Expr r_hi = r.hi + (r.lo + rest);
  Expr p = r_hi * r_hi * polynomial(r_hi, table::exp_f64);
  Uncontracted keep(e.hi);
  Pair argument = fast_two_sum(r.hi, r.lo + rest);
  Pair one = fast_two_sum(constant(e.hi, Type::f64, 1.0), argument.hi);
  return {fast_two_sum(one.hi, one.lo + (argument.lo + p)), n.digits};
}

}  // namespace quern::ir::math
