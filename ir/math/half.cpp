// Conversions between halves and floats where a target has none.
//
// A float's exponent lies 112 above a half's. The subnormal halves are the multiples of 2^-24 up to
// 2^-14: a float sum with a number whose last bit counts 2^-24 places their fractions, or rounds to
// them. All intermediate floats are normal, so that a target may flush subnormals.
#include "ir/math/functions.h"

namespace quern::ir::math {

Expr widen_half(Expr h) {
  Expr word = convert(h, Type::u32);
  Expr sign = (word & 0x8000) << 16;
  Expr scaled = (word & 0x7fff) << 13;
  Expr normal = scaled + (112 << 23);
  Expr special = scaled + (224 << 23);
  Expr subnormal = bits(float_of(scaled + (113 << 23)) - 0x1p-14);
  Expr magnitude =
      select(scaled < (1 << 23), subnormal, select(scaled >= (31 << 23), special, normal));
  return float_of(sign | magnitude);
}

Expr round_to_half(Expr x) {
  Expr word = bits(x);
  Expr sign = (word >> 16) & 0x8000;
  Expr magnitude = word & 0x7fffffff;
  Expr odd = (magnitude >> 13) & 1;
  Expr normal = (magnitude + (0xfff - (112 << 23)) + odd) >> 13;  // a carry may reach infinity
  Expr subnormal = bits(float_of(magnitude) + 0.5) - 0x3f000000;
  Expr nan = ((magnitude >> 13) & 0x3ff) | 0x7e00;
  Expr large = select(magnitude > 0x7f800000, nan, 0x7c00);
  Expr rounded =
      select(magnitude < (113 << 23), subnormal, select(magnitude >= (143 << 23), large, normal));
  return convert(sign | rounded, Type::u16);
}

Expr round_to_odd(Expr x) {
  Expr nearest = convert(x, Type::f32);
  Expr back = convert(nearest, Type::f64);
  Expr word = bits(nearest);
  Expr toward_zero = select(abs(back) > abs(x), word - 1, word);
  // a NaN differs from itself: its last bit changes nothing
  return float_of(select(back != x, toward_zero | 1, word));
}

}  // namespace quern::ir::math
