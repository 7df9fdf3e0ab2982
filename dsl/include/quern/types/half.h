#pragma once
// The host's binary16, IEEE 754: 11 bits of precision, up to 65504, subnormals down to 2^-24.
#include <cstdint>
#include <type_traits>

namespace quern {

/// A half-precision number. Conversions as those of C++23's std::float16_t: to float and double
/// freely and exactly, from integers freely, from float and double explicitly, rounded once to
/// nearest, ties to even. half op half, half op integer is a half; half op float is a float.
class half {
 public:
  constexpr half() = default;
  template <class I>
    requires std::is_integral_v<I>
  constexpr half(I v) : bits_(rounded(double(v))) {}
  explicit constexpr half(float v) : bits_(rounded(double(v))) {}
  explicit constexpr half(double v) : bits_(rounded(v)) {}
  static constexpr half from_bits(uint16_t bits) {
    half h;
    h.bits_ = bits;
    return h;
  }
  constexpr uint16_t bits() const { return bits_; }

  constexpr operator float() const {
    uint32_t sign = uint32_t(bits_ & 0x8000) << 16, exponent = bits_ >> 10 & 31,
             fraction = bits_ & 0x3ff;
    if (exponent == 0) {
      float v = float(fraction) * 0x1p-24f;
      return sign ? -v : v;
    }
    uint32_t biased = exponent == 31 ? 255 : exponent + 112;
    return __builtin_bit_cast(float, sign | biased << 23 | fraction << 13);
  }

  // float has more than twice the bits and two, so rounding its result again rounds correctly
  // (Figueroa, When is double rounding innocuous?, 1995).
  friend constexpr half operator+(half a, half b) { return half(float(a) + float(b)); }
  friend constexpr half operator-(half a, half b) { return half(float(a) - float(b)); }
  friend constexpr half operator*(half a, half b) { return half(float(a) * float(b)); }
  friend constexpr half operator/(half a, half b) { return half(float(a) / float(b)); }
  friend constexpr half operator-(half a) { return from_bits(uint16_t(a.bits_ ^ 0x8000)); }
  friend constexpr half operator+(half a) { return a; }
#define QUERN_HALF_OPERATOR(symbol)                              \
  template <class I>                                             \
    requires std::is_integral_v<I>                               \
  friend constexpr half operator symbol(half a, I b) {           \
    return a symbol half(b);                                     \
  }                                                              \
  template <class I>                                             \
    requires std::is_integral_v<I>                               \
  friend constexpr half operator symbol(I a, half b) {           \
    return half(a) symbol b;                                     \
  }                                                              \
  template <class U>                                             \
    requires(std::is_arithmetic_v<U> || std::is_same_v<U, half>) \
  constexpr half& operator symbol##=(U b) {                      \
    return *this = half(*this symbol b);                         \
  }
  QUERN_HALF_OPERATOR(+)
  QUERN_HALF_OPERATOR(-)
  QUERN_HALF_OPERATOR(*)
  QUERN_HALF_OPERATOR(/)
#undef QUERN_HALF_OPERATOR

 private:
  /// The bits of v rounded to nearest, ties to even.
  static constexpr uint16_t rounded(double v) {
    uint64_t x = __builtin_bit_cast(uint64_t, v), fraction = x & 0xfffffffffffff;
    uint16_t sign = uint16_t(x >> 48 & 0x8000);
    int exponent = int(x >> 52 & 0x7ff) - 1023;
    if (exponent == 1024 && fraction != 0) return uint16_t(sign | 0x7e00 | fraction >> 42);
    if (exponent >= 16) return sign | 0x7c00;
    // Of a normal result the exponent stands above the fraction, and rounding up may carry into
    // it; a subnormal one is a multiple of 2^-24.
    bool normal = exponent >= -14;
    int dropped = normal ? 42 : 28 - exponent;
    if (dropped > 53) return sign;
    uint64_t all = (normal ? uint64_t(exponent + 15) : 1) << 52 | fraction;
    uint64_t kept = all >> dropped, rest = all & ((uint64_t(1) << dropped) - 1),
             tie = uint64_t(1) << (dropped - 1);
    kept += rest > tie || (rest == tie && kept % 2 == 1);
    return uint16_t(sign | kept);
  }

  uint16_t bits_ = 0;
};

}  // namespace quern
