#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace quern::ir {

/// Every value is a scalar; `address` exists only after access lowering, `slot` names a mutable
/// local (its element type stands in Inst::elem of the `slot` instruction).
enum class Type : uint8_t {
  none,
  b1,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  f32,
  f64,
  address,
  slot
};

constexpr bool is_signed(Type t) { return t >= Type::i8 && t <= Type::i64; }
constexpr bool is_unsigned(Type t) { return t >= Type::u8 && t <= Type::u64; }
constexpr bool is_int(Type t) { return is_signed(t) || is_unsigned(t); }
constexpr bool is_float(Type t) { return t >= Type::f16 && t <= Type::f64; }
constexpr bool is_number(Type t) { return is_int(t) || is_float(t); }
constexpr bool is_scalar(Type t) { return t >= Type::b1 && t <= Type::f64; }

/// Width of a value in bits; b1 is 1, an address 64, others 0.
constexpr unsigned bit_width(Type t) {
  switch (t) {
    case Type::b1: return 1;
    case Type::i8:
    case Type::u8: return 8;
    case Type::i16:
    case Type::u16:
    case Type::f16: return 16;
    case Type::i32:
    case Type::u32:
    case Type::f32: return 32;
    case Type::i64:
    case Type::u64:
    case Type::f64:
    case Type::address: return 64;
    default: return 0;
  }
}
/// Bytes in storage; a bool takes one.
constexpr unsigned byte_size(Type t) { return t == Type::b1 ? 1 : bit_width(t) / 8; }

/// What memory holds of a scalar where nothing else is said.
constexpr Type storage_type(Type t) { return t == Type::b1 ? Type::u8 : t; }

/// The type of tangents and adjoints of a float: its own, but f32 for f16, as sums are kept in
/// them.
constexpr Type derivative_type(Type t) { return t == Type::f16 ? Type::f32 : t; }

constexpr Type unsigned_of(Type t) {
  return is_signed(t) ? Type(uint8_t(t) - uint8_t(Type::i8) + uint8_t(Type::u8)) : t;
}

/// Is every value of `from` a value of `to`, so that converting loses nothing?
bool preserves(Type from, Type to);

/// The name used by the text form ("f32"), and its inverse.
std::string_view name(Type t);
std::optional<Type> type_named(std::string_view name);

/// The bits of a scalar in the low end of a word; the rest is zero. b1 is 0 or 1.
using Bits = uint64_t;

constexpr Bits truncate(Bits b, Type t) {
  unsigned w = bit_width(t);
  return w >= 64 ? b : b & ((Bits(1) << w) - 1);
}
/// Signed integers sign-extended, others zero-extended.
constexpr int64_t to_signed(Bits b, Type t) {
  unsigned w = bit_width(t);
  return w >= 64 ? int64_t(b) : int64_t(b << (64 - w)) >> (64 - w);
}
Bits bits_of(float v);
Bits bits_of(double v);
float f32_of(Bits b);
double f64_of(Bits b);
/// Of a half, exactly; and its bits from a number, rounded once to nearest, ties to even.
float f16_of(Bits b);
Bits bits_of_half(double v);
/// The value of the bits of any floating type.
double real_of(Bits b, Type t);
/// `v` as a constant of type `t` (integers wrap, floats round).
Bits bits_of_int(int64_t v, Type t);
Bits bits_of_real(double v, Type t);

}  // namespace quern::ir
