#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// x = m · 2^3q+j, j = 0, 1, 2: a polynomial gives ∛m, j a factor, q the exponent. The guess y is
// cut to a third of the digits, so that y³ and e = (x - y³) / y³ are exact but for the division; ∛x
// = y (1 + e)^⅓ = y + y (e/3 - e²/9 + 5e³/81 - …), after which only the last addition rounds.

namespace {
/// y to the nearest of `digits` significant digits.
Expr round_significand(Expr y, int digits) {
  const int cut = format(y).digits + 1 - digits;
  Expr half = bits(y) + (uint64_t(1) << (cut - 1));
  return float_of((half >> cut) << cut);
}

template <size_t N>
Expr cbrt_of(Expr x, const double (&guess)[N]) {
  const Format& f = format(x);
  const bool wide = x.type() == Type::f64;
  Expr ax = abs(x);
  auto of = [&](Expr normal, int shift) {
    Expr u = bits(normal);
    // The exponent with a bias that 3 divides, as 3 third + j; third is (exponent - 1) / 3 rounded.
    const int bias = wide ? 1023 : 129;
    Expr exponent = (u >> f.digits) + (bias - f.bias);
    const double unit = wide ? 0x1p52 : 0x1p23;
    Expr one_less = float_of(exponent | bits(constant(x, x.type(), unit))) - (unit + 1);
    Expr third = bits(one_less * (1.0 / 3) + 1.5 * unit) - bits(constant(x, x.type(), 1.5 * unit));
    Expr j = exponent - ((third << 1) + third);
    Expr m = float_of((u & ((uint64_t(1) << f.digits) - 1)) | (uint64_t(f.bias) << f.digits));
    Expr y = polynomial(m, guess);
    Expr factor = select(j == 0, 1.0,
                         select(j == 1, constant(x, x.type(), 0x1.428a2f98d728bp+0),
                                constant(x, x.type(), 0x1.965fea53d6e3dp+0)));
    Expr cut = round_significand(y * factor, wide ? 17 : 8);
    m = float_of(bits(m) + (j << f.digits));
    Expr cube = cut * cut * cut;
    Expr e = (m - cube) / cube;
    Expr series = e * (1.0 / 3 + e * (-1.0 / 9 + e * (5.0 / 81)));
    Expr root = cut + cut * series;
    Expr q = bitcast(third, f.integer) - int64_t(bias / 3);
    return root * power_of_two(q - shift / 3);
  };
  const int shift = wide ? 54 : 24;  // a multiple of 3
  auto rare = [&] {
    Expr result = of(ax * (wide ? 0x1p54 : 0x1p24), shift);  // a subnormal
    return select((ax < 1.0) & (ax > 0.0), result, ax);
  };
  auto usual = [&] { return of(ax, 0); };
  // Zeros are no rarity.
  Expr zero = ax == 0.0;
  Expr result = rarely_else(!(is_positive_normal(ax) | zero), rare, usual);
  return select(zero, x, flip_sign(result, sign_of(x)));
}

// √(x² + y²). Rarely, where a square would overflow or the larger be subnormal, after scaling the
// larger to [1, 2): what underflows then is too small to matter.

Expr hypot_of(Expr x, Expr y) {
  const Format& f = format(x);
  const bool wide = x.type() == Type::f64;
  Expr ax = abs(x), ay = abs(y);
  Expr swap = ax < ay;
  Expr large = select(swap, ay, ax), small = select(swap, ax, ay);
  auto rare = [&] {
    Expr exponent = bits(large) >> f.digits;
    // powers of two near 1 / large and large that are normal numbers
    Expr bounded = max(min(exponent, 2 * f.bias - 1), 1);
    Expr down = float_of((2 * f.bias - bounded) << f.digits);
    Expr up = float_of(bounded << f.digits);
    Expr a = large * down, b = small * down;
    Expr result = sqrt(a * a + b * b) * up;
    result = select(is_nan(x) | is_nan(y), not_a_number, result);
    return select((ax == infinity) | (ay == infinity), infinity, result);
  };
  auto usual = [&] { return sqrt(large * large + small * small); };
  Expr good = (large > (wide ? 0x1p-480 : 0x1p-48)) & (large < (wide ? 0x1p510 : 0x1p62));
  Expr zero = bits(large) == 0;  // both are: no rarity
  return rarely_else(!((good | zero) & (small <= large)), rare, usual);
}
}  // namespace

Expr cbrt_f32(Expr x) { return cbrt_of(x, table::cbrt_single); }
Expr cbrt_f64(Expr x) { return cbrt_of(x, table::cbrt_f64); }
Expr hypot_f32(Expr x, Expr y) { return hypot_of(x, y); }
Expr hypot_f64(Expr x, Expr y) { return hypot_of(x, y); }

}  // namespace quern::ir::math
