#include <cmath>

#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// x^-⅓ from bits of x divided by -3 (within 1/29; Moroz, Samotyy, Walczyk & Cieśliński 2021), twice
// refined by Halley's step; then x times its square, and what is left of x - y³ by Newton's step.

namespace {
/// x^-⅓ of a positive normal number, by the logarithm that its bits are: about 4/3 of those of 1
/// less a third of those of x.
Expr guess_inverse_cbrt(Expr x) {
  const Format& f = format(x);
  const int cut = bit_width(x.type()) - f.digits;  // bits below are lost
  const double unit = std::exp2(f.digits);
  const double ones = std::exp2(f.digits - cut) * (4.0 / 3 * f.bias - 0.06686);
  Expr place = float_of((bits(x) >> cut) | bits(constant(x, x.type(), unit)));  // + unit
  Expr guess = (4.0 / 3 * unit + ones) - place * (1.0 / 3);
  return float_of(bits(guess) << cut);
}

Expr cbrt_of_normal(Expr x) {
  // A little less than 1 keeps y³ below x, so that it does not overflow; the last step is
  // quadratic.
  const double target = 1 - (x.type() == Type::f64 ? 0x1p-46 : 0x1p-19);
  Expr r = guess_inverse_cbrt(x);
  for (int step = 0; step < 2; step++) {
    Expr e = target - (x * r) * (r * r);
    r = r + (r * e) * (1.0 / 3 + (2.0 / 9) * e);
  }
  Expr square = r * r;
  Expr y = x * square;
  return y + (x - (y * y) * y) * (square * (1.0 / 3));
}

Expr cbrt_of(Expr x) {
  const bool wide = x.type() == Type::f64;
  Expr ax = abs(x);
  auto rare = [&] {
    Expr result = cbrt_of_normal(ax * (wide ? 0x1p54 : 0x1p24)) * (wide ? 0x1p-18 : 0x1p-8);
    return select((ax < 1.0) & (ax > 0.0), result, ax);  // a subnormal
  };
  auto usual = [&] { return cbrt_of_normal(ax); };
  // Zeros are no rarity.
  Expr zero = ax == 0.0;
  Expr result = rarely_else(!(is_positive_normal(ax) | zero), rare, usual);
  return select(zero, x, flip_sign(result, sign_of(x)));
}

// √(x² + y²). Rarely, where a square would overflow or the larger be subnormal, after scaling the
// larger to [1, 2): what underflows then is too small to matter.

/// √a of a normal or zero f64 within an ulp: Goldschmidt's iteration for √a and 1 / 2√a, from bits
/// of 1 / √a that are within 1/29 (Lomont 2003), then what is left of a - g². Wide vectors do it
/// faster than the square root.
Expr approximate_sqrt(Expr a) {
  Expr y = float_of(constant(bits(a), Type::u64, 0x5fe6eb50c7b537a9) - (bits(a) >> 1));
  Expr g = a * y, h = 0.5 * y;
  for (int step = 0; step < 3; step++) {
    Expr r = 0.5 - g * h;
    g = g + g * r;
    h = h + h * r;
  }
  return g + (a - g * g) * h;
}

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
  // The square neither overflows nor loses digits; a NaN fails too.
  Expr square = large * large + small * small;
  auto whole = [&](double bound) { return bits(constant(x, x.type(), bound)); };
  Expr least = whole(wide ? 0x1p-960 : 0x1p-96), most = whole(wide ? 0x1p1020 : 0x1p124);
  Expr good = bits(square) - least < most - least;
  Expr zero = bits(large) == 0;  // both are: no rarity
  auto usual = [&] { return wide ? approximate_sqrt(square) : sqrt(square); };
  return rarely_else(!(good | zero), rare, usual);
}
}  // namespace

Expr cbrt_f32(Expr x) { return cbrt_of(x); }
Expr cbrt_f64(Expr x) { return cbrt_of(x); }
Expr rsqrt_f32(Expr x) { return 1.0 / sqrt(x); }
Expr rsqrt_f64(Expr x) { return 1.0 / sqrt(x); }
Expr hypot_f32(Expr x, Expr y) { return hypot_of(x, y); }
Expr hypot_f64(Expr x, Expr y) { return hypot_of(x, y); }

}  // namespace quern::ir::math
