// Halves against the compiler's own binary16: evaluate, and the conversions of type.h.
#include <cmath>
#include <cstring>
#include <random>

#include "quern/ir/ops.h"
#include "tests/catch.h"

using namespace quern::ir;

namespace {

Bits bits(_Float16 v) {
  uint16_t out;
  std::memcpy(&out, &v, sizeof out);
  return out;
}
_Float16 half(Bits b) {
  const uint16_t in = uint16_t(b);
  _Float16 out;
  std::memcpy(&out, &in, sizeof out);
  return out;
}
bool same(Bits a, Bits b) { return a == b || ((a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00); }
Bits run(Op op, Type operand, Type result, std::vector<Bits> args) {
  Bits out = 0xdeadbeefdeadbeef;
  REQUIRE(evaluate(op, operand, result, args, out));
  return out;
}

}  // namespace

TEST_CASE("f16: every half converts to numbers and back") {
  int wrong = 0;
  for (Bits b = 0; b < 65536; b++) {
    const float v = float(half(b));
    const Bits f32 = run(Op::convert, Type::f16, Type::f32, {b});
    const Bits f64 = run(Op::convert, Type::f16, Type::f64, {b});
    if (std::isnan(v)) {
      wrong += !std::isnan(f32_of(f32)) || !std::isnan(f64_of(f64));
    } else {
      wrong += f32 != bits_of(v) || f64 != bits_of(double(v));
      const Bits i32 = run(Op::convert, Type::f16, Type::i32, {b});
      if (!std::isinf(v)) wrong += i32 != Bits(uint32_t(int32_t(v)));
    }
    wrong += !same(run(Op::convert, Type::f32, Type::f16, {f32}), b);
    wrong += !same(run(Op::convert, Type::f64, Type::f16, {f64}), b);
    wrong += run(Op::bitcast, Type::f16, Type::u16, {b}) != b;
    wrong += !same(run(Op::neg, Type::f16, Type::f16, {b}), b ^ 0x8000);
  }
  CHECK(wrong == 0);
  CHECK(run(Op::convert, Type::f16, Type::i32, {0x7c00}) == 0x7fffffff);  // saturates
  CHECK(run(Op::convert, Type::f16, Type::u8, {0x7e00}) == 0);            // NaN
}

TEST_CASE("f16: numbers round once, ties to even") {
  auto from = [](double v) { return run(Op::convert, Type::f64, Type::f16, {bits_of(v)}); };
  CHECK(from(65504) == 0x7bff);
  CHECK(from(std::nextafter(65520.0, 0.0)) == 0x7bff);
  CHECK(from(65520) == 0x7c00);
  CHECK(from(-1e300) == 0xfc00);
  CHECK(from(0x1p-25) == 0);
  CHECK(from(std::nextafter(0x1p-25, 1.0)) == 1);
  CHECK(from(1 + 0x1p-11) == 0x3c00);
  CHECK(from(1 + 0x1p-11 + 0x1p-40) == 0x3c01);  // f32 in between would make a tie of it
  CHECK(run(Op::convert, Type::i64, Type::f16, {2049}) == bits(_Float16(2048)));
  CHECK(run(Op::convert, Type::i64, Type::f16, {2051}) == bits(_Float16(2052)));
  CHECK(run(Op::convert, Type::u64, Type::f16, {~Bits(0)}) == 0x7c00);
  CHECK(run(Op::convert, Type::b1, Type::f16, {1}) == 0x3c00);
  std::mt19937_64 random(3);
  int wrong = 0;
  for (int k = 0; k < 2000000; k++) {
    // exponents around those of a half, fractions near ties
    const Bits word = random();
    const Bits exponent = Bits(1023 - 30 + random() % 50) << 52;
    const Bits fraction = (word >> 12) & (k % 2 ? ~Bits(0) >> 12 : Bits(0xffffe00000001));
    const double v = f64_of((word & Bits(1) << 63) | exponent | fraction);
    wrong += from(v) != bits(static_cast<_Float16>(v));
    const float w = float(v);
    wrong += run(Op::convert, Type::f32, Type::f16, {bits_of(w)}) != bits(static_cast<_Float16>(w));
  }
  CHECK(wrong == 0);
}

TEST_CASE("f16: rows are those of f32, rounded once") {
  std::mt19937 random(5);
  int wrong = 0;
  for (int k = 0; k < 200000; k++) {
    const Bits a = random() & 0xffff, b = random() & 0xffff;
    const float x = float(half(a)), y = float(half(b));
    auto row = [&](Op op, float v) {
      wrong += !same(run(op, Type::f16, Type::f16, {a, b}), bits(static_cast<_Float16>(v)));
    };
    row(Op::add, x + y);
    row(Op::sub, x - y);
    row(Op::mul, x * y);
    row(Op::div, x / y);
    row(Op::min, y < x ? y : x);
    row(Op::copysign, std::copysign(x, y));
    wrong += run(Op::lt, Type::f16, Type::b1, {a, b}) != (x < y);
    wrong += run(Op::eq, Type::f16, Type::b1, {a, b}) != (x == y);
    wrong +=
        !same(run(Op::sqrt, Type::f16, Type::f16, {a}), bits(static_cast<_Float16>(std::sqrt(x))));
    wrong += !same(run(Op::floor, Type::f16, Type::f16, {a}),
                   bits(static_cast<_Float16>(std::floor(x))));
  }
  CHECK(wrong == 0);
}
