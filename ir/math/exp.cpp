#include <cmath>

#include "ir/math/coefficients.h"
#include "ir/math/exp_parts.h"
#include "ir/math/functions.h"

namespace quern::ir::math {

// exp x = 2^n · exp r, n = round(x / ln 2), r = x - n ln 2 (Cody & Waite, Software Manual for the
// Elementary Functions, 1980, chapter 6; Muller, Elementary Functions, 11.2). 2^n is a product of
// two powers, one of which is a constant on each side of 0: the other is normal also where the
// result is subnormal or infinite, and only the last product rounds. No branch, no other path for
// NaN: the loops around stay straight.

namespace {
/// What differs by type: arguments below `lowest` give 0, those above `highest` infinity (exp; 2:
/// exp2); where `rare`, 2^n of expm1 may overflow though the result does not.
struct Range {
  double offset, lowest, rare, highest, lowest2, highest2;
};
constexpr Range range_f32{25, -104.0, 88.0, 89.0, -150.5, 129.0};
constexpr Range range_f64{55, -746.0, 709.0, 710.0, -1076.5, 1025.0};
const Range& range(Expr x) { return x.type() == Type::f64 ? range_f64 : range_f32; }

/// exponential(n) · 2^n with n = round(y), where c lies within the range and y is c to the base 2.
template <class F>
Expr raised(Expr c, Expr y, F&& exponential) {
  const double offset = range(c).offset, bias = format(c).bias;
  Expr below = c < 0.0, less = constant(c, c.type(), bias - 1), twice = constant(c, c.type(), 2.0);
  ByPower p = by_power(y, select(below, bias + offset, less));
  return exponential(p.n) * float_of(p.shift) * select(below, std::exp2(-offset), twice);
}

Expr exp_of(Expr x) {
  const Range& in = range(x);
  Expr c = min(max(x, in.lowest), in.highest);
  return raised(c, c * table::log2_e, [&](Expr n) { return exp_reduced(less_ln2(c, n)); });
}

// 2^x = 2^n · 2^r, n = round(x): r is exact.

Expr exp2_reduced(Expr r) {
  Expr q =
      r.type() == Type::f64 ? polynomial(r, table::exp2_f64) : polynomial(r, table::exp2_single);
  return 1.0 + (r * table::ln2_nearest + r * r * q);
}

Expr exp2_of(Expr x) {
  const Range& in = range(x);
  Expr c = min(max(x, in.lowest2), in.highest2);
  return raised(c, c, [&](Expr n) { return exp2_reduced(c - n); });
}

// exp x - 1 = 2^n (exp r - 1) + (2^n - 1). Rarely, where 2^n may overflow though the result does
// not, all is carried at half its size.

Expr expm1_of(Expr x) {
  const Range& in = range(x);
  const double least = x.type() == Type::f64 ? -40.0 : -20.0;  // -1 from there on
  auto of = [&](Expr c, int halvings) {
    ByLn2 d = by_ln2(c);
    Expr p = d.r * d.r *
             (x.type() == Type::f64 ? polynomial(d.r, table::exp_f64)
                                    : polynomial(d.r, table::exp_single));
    Expr power = power_of_two(d.n.digits - halvings);
    Expr whole = power - std::ldexp(1.0, -halvings);
    return whole + power * (d.r + (d.lost + p));
  };
  auto rare = [&] { return 2.0 * of(min(x, in.highest), 1); };
  auto usual = [&] { return of(max(x, least), 0); };
  Expr result = rarely_else(!(x <= in.rare), rare, usual);
  return float_of(bits(result) | sign_of(x));  // of a zero
}
}  // namespace

Expr exp_f32(Expr x) { return exp_of(x); }
Expr exp_f64(Expr x) { return exp_of(x); }
Expr exp2_f32(Expr x) { return exp2_of(x); }
Expr exp2_f64(Expr x) { return exp2_of(x); }
Expr expm1_f32(Expr x) { return expm1_of(x); }
Expr expm1_f64(Expr x) { return expm1_of(x); }

}  // namespace quern::ir::math
