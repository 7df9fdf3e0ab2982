// The conversions of halves in IR operations against the compiler's own binary16.
#include <cmath>
#include <cstring>
#include <random>

#include "tests/catch.h"
#include "tests/math/evaluator.h"

using namespace quern::ir;
using quern::test::Evaluator;

namespace {
uint16_t reference(double v) {
  const _Float16 h = static_cast<_Float16>(v);
  uint16_t bits;
  std::memcpy(&bits, &h, sizeof bits);
  return bits;
}
float reference(uint16_t bits) {
  _Float16 h;
  std::memcpy(&h, &bits, sizeof bits);
  return float(h);
}
bool same(Bits a, Bits b) { return a == b || ((a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00); }
}  // namespace

TEST_CASE("every half widens to its value") {
  Evaluator widen(widen_half_function());
  int wrong = 0;
  for (Bits b = 0; b < 65536; b++) {
    const float expected = reference(uint16_t(b));
    const Bits got = widen({b});
    wrong += std::isnan(expected) ? !std::isnan(f32_of(got)) : got != bits_of(expected);
  }
  CHECK(wrong == 0);
}

TEST_CASE("floats round to the nearest half, ties to even") {
  Evaluator round(round_to_half_function());
  int wrong = 0;
  auto check = [&](float v) { wrong += !same(round({bits_of(v)}), reference(double(v))); };
  // every half, the middle between it and the next, and the neighbours of both
  for (uint32_t b = 0; b < 0x7c00; b++) {
    const float v = reference(uint16_t(b)),
                above = b == 0x7bff ? 65536 : reference(uint16_t(b + 1));
    const float middle = (v + above) / 2;
    for (float x : {v, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f),
                    std::nextafter(v, 0.0f)})
      check(x), check(-x);
  }
  std::mt19937 random(4);
  for (int k = 0; k < 300000; k++) check(f32_of(random()));
  CHECK(wrong == 0);
}

TEST_CASE("a double rounded to odd, then to half, is rounded once") {
  Evaluator odd(round_to_odd_function()), round(round_to_half_function());
  int wrong = 0;
  auto check = [&](double v) { wrong += !same(round({odd({bits_of(v)})}), reference(v)); };
  for (uint32_t b = 0; b < 0x7c00; b++) {
    const double v = reference(uint16_t(b)),
                 above = b == 0x7bff ? 65536 : reference(uint16_t(b + 1));
    const double middle = (v + above) / 2;
    for (double x : {v, middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e9),
                     middle * (1 + 0x1p-30), middle * (1 - 0x1p-30)})
      check(x), check(-x);
  }
  for (double v : {1e300, 3.5e38, 0x1.fffffffffp127, 1e-300, 5e-324, double(INFINITY), double(NAN)})
    check(v), check(-v);
  CHECK(wrong == 0);
}
