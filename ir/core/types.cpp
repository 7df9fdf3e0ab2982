#include <array>
#include <bit>
#include <cmath>

#include "quern/ir/type.h"

namespace quern::ir {

namespace {
constexpr std::array<std::string_view, 15> names = {"none", "b1",  "i8",  "i16",     "i32",
                                                    "i64",  "u8",  "u16", "u32",     "u64",
                                                    "f16",  "f32", "f64", "address", "slot"};
}

std::string_view name(Type t) { return names[size_t(t)]; }

std::optional<Type> type_named(std::string_view text) {
  for (size_t k = 0; k < names.size(); k++)
    if (names[k] == text) return Type(k);
  return std::nullopt;
}

Bits bits_of(float v) { return std::bit_cast<uint32_t>(v); }
Bits bits_of(double v) { return std::bit_cast<uint64_t>(v); }
float f32_of(Bits b) { return std::bit_cast<float>(uint32_t(b)); }
double f64_of(Bits b) { return std::bit_cast<double>(b); }

float f16_of(Bits b) {
  const uint32_t sign = uint32_t(b & 0x8000) << 16, exponent = b >> 10 & 31, fraction = b & 0x3ff;
  if (exponent == 0) return std::copysign(float(fraction) * 0x1p-24f, sign ? -1.0f : 1.0f);
  const uint32_t biased = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | biased << 23 | fraction << 13);
}

Bits bits_of_half(double v) {
  const Bits x = bits_of(v), fraction = x & 0xfffffffffffff, sign = x >> 48 & 0x8000;
  const int exponent = int(x >> 52 & 0x7ff) - 1023;
  if (std::isnan(v)) return sign | 0x7e00 | fraction >> 42;
  if (exponent >= 16) return sign | 0x7c00;
  // Of a normal result the exponent stands above the fraction, and rounding up may carry into it;
  // a subnormal one is a multiple of 2^-24.
  const bool normal = exponent >= -14;
  const int dropped = normal ? 42 : 28 - exponent;
  if (dropped > 53) return sign;
  const Bits all = (normal ? Bits(exponent + 15) : 1) << 52 | fraction;
  const Bits rest = all & ((Bits(1) << dropped) - 1), tie = Bits(1) << (dropped - 1);
  Bits kept = all >> dropped;
  kept += rest > tie || (rest == tie && kept % 2 == 1);
  return sign | kept;
}

double real_of(Bits b, Type t) {
  return t == Type::f16 ? double(f16_of(b)) : t == Type::f32 ? double(f32_of(b)) : f64_of(b);
}

Bits bits_of_int(int64_t v, Type t) {
  if (t == Type::f16) return bits_of_half(double(v));
  if (t == Type::f32) return bits_of(float(v));
  if (t == Type::f64) return bits_of(double(v));
  if (t == Type::b1) return v != 0;
  return truncate(Bits(v), t);
}

Bits bits_of_real(double v, Type t) {
  if (t == Type::f16) return bits_of_half(v);
  if (t == Type::f32) return bits_of(float(v));
  if (t == Type::f64) return bits_of(v);
  return bits_of_int(int64_t(v), t);
}

bool preserves(Type from, Type to) {
  if (from == to) return true;
  if (to == Type::b1) return false;
  if (from == Type::b1) return true;
  if (is_float(from)) return is_float(to) && to > from;
  unsigned digits = bit_width(from) - (is_signed(from) ? 1 : 0);
  if (to == Type::f16) return digits <= 11;
  if (to == Type::f32) return digits <= 24;
  if (to == Type::f64) return digits <= 53;
  if (is_signed(from) && is_unsigned(to)) return false;
  return digits <= bit_width(to) - (is_signed(to) ? 1 : 0);
}

}  // namespace quern::ir
