#include <array>
#include <bit>
#include <cmath>

#include "quern/ir/type.h"

namespace quern::ir {

namespace {
constexpr std::array<std::string_view, 14> names = {"none", "b1",  "i8",      "i16", "i32",
                                                    "i64",  "u8",  "u16",     "u32", "u64",
                                                    "f32",  "f64", "address", "slot"};
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

Bits bits_of_int(int64_t v, Type t) {
  if (t == Type::f32) return bits_of(float(v));
  if (t == Type::f64) return bits_of(double(v));
  if (t == Type::b1) return v != 0;
  return truncate(Bits(v), t);
}

Bits bits_of_real(double v, Type t) {
  if (t == Type::f32) return bits_of(float(v));
  if (t == Type::f64) return bits_of(v);
  return bits_of_int(int64_t(v), t);
}

}  // namespace quern::ir
