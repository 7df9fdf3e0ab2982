// The host's half against the compiler's own binary16, and against values written out.
#include "quern/types/half.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "tests/catch.h"

using quern::half;

namespace {
uint16_t reference(float v) {
  _Float16 h = static_cast<_Float16>(v);
  uint16_t bits;
  std::memcpy(&bits, &h, sizeof bits);
  return bits;
}
uint16_t reference(double v) {
  _Float16 h = static_cast<_Float16>(v);
  uint16_t bits;
  std::memcpy(&bits, &h, sizeof bits);
  return bits;
}
bool is_nan(uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }
bool same(uint16_t a, uint16_t b) { return a == b || (is_nan(a) && is_nan(b)); }
}  // namespace

TEST_CASE("half: constants and types of mixed arithmetic") {
  static_assert(half(1.0f).bits() == 0x3c00 && half(-2).bits() == 0xc000);
  static_assert(half(65504.0f).bits() == 0x7bff && half(65519.0f).bits() == 0x7bff);
  static_assert(half(65520.0f).bits() == 0x7c00 && half(1e30).bits() == 0x7c00);
  static_assert(half(0x1p-24).bits() == 1 && half(0x1p-25).bits() == 0 &&
                half(0x1.8p-25).bits() == 1 && half(0x1.8p-24).bits() == 2);
  static_assert(half(0x1p-14).bits() == 0x400 && half(-0.0f).bits() == 0x8000);
  static_assert(half(1.0 / 3).bits() == 0x3555 && float(half::from_bits(0x3555)) == 0x1.554p-2f);
  // Just above a tie, by less than float can tell: rounding twice would give 0x3c00.
  static_assert(half(1 + 0x1p-11 + 0x1p-40).bits() == 0x3c01);
  static_assert(std::is_same_v<decltype(half(1) + half(1)), half> &&
                std::is_same_v<decltype(half(1) * 2), half> &&
                std::is_same_v<decltype(2u / half(1)), half> &&
                std::is_same_v<decltype(half(1) + 1.0f), float> &&
                std::is_same_v<decltype(1.0 - half(1)), double>);
  static_assert(!std::is_convertible_v<float, half> && std::is_convertible_v<half, double>);
  static_assert(half(2) > half(1) && half(2) == 2 && half(0.5f) < 0.75f && -half(1) == -1);
  static_assert(sizeof(half) == 2);
  half h = 3;
  h += 0.5f;
  h *= 2;
  h -= half(1);
  CHECK(h == 6);
}

TEST_CASE("half: every number to float and back") {
  int wrong = 0;
  for (int k = 0; k < 65536; k++) {
    half h = half::from_bits(uint16_t(k));
    _Float16 r;
    uint16_t bits = uint16_t(k);
    std::memcpy(&r, &bits, sizeof r);
    float want = static_cast<float>(r), found = h;
    wrong += std::isnan(want) ? !std::isnan(found)
                              : want != found || std::signbit(want) != std::signbit(found);
    wrong += !same(half(found).bits(), bits) || !same(half(double(found)).bits(), bits);
  }
  CHECK(wrong == 0);
}

TEST_CASE("half: rounding and arithmetic like the compiler's") {
  std::mt19937 random(5);
  int wrong = 0;
  for (int k = 0; k < 1000000; k++) {
    uint32_t word = uint32_t(random());
    float f;
    std::memcpy(&f, &word, sizeof f);
    wrong += !same(half(f).bits(), reference(f));
    // Near halves and the middles between them, where rounding decides.
    float a = half::from_bits(uint16_t(word)), b = half::from_bits(uint16_t(word >> 16));
    double middle = double(a) + (double(a) - double(b)) * 0x1p-11 + 0x1p-60 * int(word % 3 - 1);
    wrong += !same(half(middle).bits(), reference(middle));
    wrong += !same((half(a) + half(b)).bits(), reference(double(a) + double(b)));
    wrong += !same((half(a) - half(b)).bits(), reference(double(a) - double(b)));
    wrong += !same((half(a) * half(b)).bits(), reference(double(a) * double(b)));
    wrong += !same((half(a) / half(b)).bits(), reference(double(a) / double(b)));
  }
  CHECK(wrong == 0);
}
