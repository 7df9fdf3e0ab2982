#include <cmath>

#include "ir/math/coefficients.h"
#include "ir/math/exp_parts.h"
#include "ir/math/functions.h"

namespace quern::ir::math {

// exp x = 2^n · exp r, n = round(x / ln 2), r = x - n ln 2 (Cody & Waite, Software Manual for the
// Elementary Functions, 1980, chapter 6; Muller, Elementary Functions, 11.2). 2^n is added to the
// exponent; below 0 so many places above its own that it is normal where the result is subnormal,
// and a product brings it back. Near overflow, and for a NaN, a rare branch goes two steps.

namespace {
/// What differs by type: arguments below `lowest` give 0, those above `usual` (exp) or `usual2`
/// (exp2) are rare, and infinity comes above `highest`.
struct Range {
  double offset, lowest, usual, highest, lowest2, usual2, highest2;
};
constexpr Range range_f32{24, -104.0, 88.0, 89.0, -150.5, 127.0, 129.0};
constexpr Range range_f64{54, -746.0, 709.0, 710.0, -1076.5, 1023.0, 1025.0};
const Range& range(Expr x) { return x.type() == Type::f64 ? range_f64 : range_f32; }

/// exponential(n) · 2^n with n = round(y), where c ≥ the lowest and y is c to the base 2.
template <class F>
Expr raised(Expr c, Expr y, F&& exponential) {
  const double offset = range(c).offset;
  Expr below = c < 0.0, zero = constant(c, c.type(), 0.0);
  ByPower p = by_power(y, select(below, offset, zero));
  Expr one = constant(c, c.type(), 1.0);
  return float_of(bits(exponential(p.n)) + p.shift) * select(below, std::exp2(-offset), one);
}

Expr exp_of(Expr x) {
  const Range& in = range(x);
  auto rare = [&] {
    ByLn2 d = by_ln2(min(x, in.highest));
    return scale(exp_reduced(d.r), d.n.digits);
  };
  auto usual = [&] {
    Expr c = max(x, in.lowest);
    return raised(c, c * table::log2_e, [&](Expr n) { return exp_reduced(less_ln2(c, n)); });
  };
  return rarely_else(!(x <= in.usual), rare, usual);
}

// 2^x = 2^n · 2^r, n = round(x): r is exact.

Expr exp2_reduced(Expr r) {
  Expr q =
      r.type() == Type::f64 ? polynomial(r, table::exp2_f64) : polynomial(r, table::exp2_single);
  return 1.0 + (r * table::ln2_nearest + r * r * q);
}

Expr exp2_of(Expr x) {
  const Range& in = range(x);
  auto rare = [&] {
    Expr c = min(x, in.highest2);
    Rounded n = round_to_integer(c);
    return scale(exp2_reduced(c - n.value), n.digits);
  };
  auto usual = [&] {
    Expr c = max(x, in.lowest2);
    return raised(c, c, [&](Expr n) { return exp2_reduced(c - n); });
  };
  return rarely_else(!(x <= in.usual2), rare, usual);
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
  Expr result = rarely_else(!(x <= in.usual), rare, usual);
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
