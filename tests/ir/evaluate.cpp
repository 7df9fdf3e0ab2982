// evaluate against wide integer and quadruple arithmetic, written independently of it.
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "quern/ir/ops.h"
#include "tests/catch.h"

using namespace quern::ir;

namespace {

__extension__ using Wide = __int128;
__extension__ using Quad = __float128;  // 113 bits: enough that rounding twice is rounding once

const std::vector<Type> ints = {Type::i8, Type::i16, Type::i32, Type::i64,
                                Type::u8, Type::u16, Type::u32, Type::u64};

/// Bits as a mathematical integer, and back, modulo 2^w.
Wide wide(Bits b, Type t) {
  const Wide modulus = Wide(1) << bit_width(t);
  Wide v = b;
  if (is_signed(t) && v >= modulus / 2) v -= modulus;
  return v;
}
Bits wrapped(Wide v, Type t) {
  const Wide modulus = Wide(1) << bit_width(t);
  v %= modulus;
  if (v < 0) v += modulus;
  return Bits(v);
}

Bits run(Op op, Type operand, Type result, std::vector<Bits> args) {
  Bits out = 0xdeadbeefdeadbeef;
  REQUIRE(evaluate(op, operand, result, args, out));
  return out;
}
Bits run(Op op, Type t, std::vector<Bits> args) { return run(op, t, t, std::move(args)); }

Bits f(float v) { return std::bit_cast<uint32_t>(v); }
Bits d(double v) { return std::bit_cast<uint64_t>(v); }

bool is_nan(Bits b, Type t) {
  return t == Type::f32 ? std::isnan(f32_of(b)) : t == Type::f64 && std::isnan(f64_of(b));
}
bool same(Bits a, Bits b, Type t) { return a == b || (is_nan(a, t) && is_nan(b, t)); }

std::vector<Bits> edges(Type t) {
  std::vector<Bits> out;
  const Wide half = Wide(1) << (bit_width(t) - 1);
  for (Wide v : {Wide(0), Wide(1), Wide(2), Wide(3), Wide(7), half, half / 2, half / 3})
    for (Wide near : {v - 1, v, v + 1, -v}) out.push_back(wrapped(near, t));
  return out;
}

std::vector<Bits> samples(Type t) {
  if (bit_width(t) == 8) {
    std::vector<Bits> all(256);
    for (size_t k = 0; k < 256; k++) all[k] = k;
    return all;
  }
  std::vector<Bits> out = edges(t);
  std::mt19937_64 random(bit_width(t));
  for (int k = 0; k < 40; k++) out.push_back(wrapped(Wide(random()), t));
  return out;
}

/// Quotient and remainder towards zero by magnitude, as on paper.
Wide quotient(Wide a, Wide b) {
  if (b == 0) return 0;
  const Wide q = (a < 0 ? -a : a) / (b < 0 ? -b : b);
  return (a < 0) != (b < 0) ? -q : q;
}

Wide floor_shift(Wide a, unsigned n) {
  const Wide p = Wide(1) << n;
  return a >= 0 ? a / p : -((-a + p - 1) / p);
}

struct IntRow {
  Op op;
  Wide (*want)(Wide a, Wide b, unsigned width);
};

unsigned modulo(Wide b, unsigned w) { return unsigned(((b % w) + w) % w); }

Wide digits(Wide a, Wide b, unsigned w, bool (*bit)(bool, bool)) {
  Wide out = 0;
  const Wide m = Wide(1) << w;
  a = (a + m) % m;
  b = (b + m) % m;
  for (unsigned k = 0; k < w; k++, a /= 2, b /= 2)
    if (bit(a % 2 != 0, b % 2 != 0)) out += Wide(1) << k;
  return out;
}

const IntRow int_rows[] = {
    {Op::add, [](Wide a, Wide b, unsigned) { return a + b; }},
    {Op::sub, [](Wide a, Wide b, unsigned) { return a - b; }},
    {Op::div, [](Wide a, Wide b, unsigned) { return quotient(a, b); }},
    {Op::rem, [](Wide a, Wide b, unsigned) { return b == 0 ? a : a - quotient(a, b) * b; }},
    {Op::min, [](Wide a, Wide b, unsigned) { return a < b ? a : b; }},
    {Op::max, [](Wide a, Wide b, unsigned) { return a > b ? a : b; }},
    {Op::shl, [](Wide a, Wide b, unsigned w) { return a * (Wide(1) << modulo(b, w)); }},
    {Op::shr, [](Wide a, Wide b, unsigned w) { return floor_shift(a, modulo(b, w)); }},
    {Op::bit_and,
     [](Wide a, Wide b, unsigned w) {
       return digits(a, b, w, [](bool x, bool y) { return x && y; });
     }},
    {Op::bit_or, [](Wide a, Wide b,
                    unsigned w) { return digits(a, b, w, [](bool x, bool y) { return x || y; }); }},
    {Op::bit_xor,
     [](Wide a, Wide b, unsigned w) {
       return digits(a, b, w, [](bool x, bool y) { return x != y; });
     }},
};

struct CompareRow {
  Op op;
  bool less, equal, greater;
};
const CompareRow compare_rows[] = {
    {Op::eq, false, true, false}, {Op::ne, true, false, true},  {Op::lt, true, false, false},
    {Op::le, true, true, false},  {Op::gt, false, false, true}, {Op::ge, false, true, true},
};

const std::vector<float> floats = {0.0f,         -0.0f,         1.0f,     -1.0f,      0.5f,
                                   -0.5f,        1.5f,          2.5f,     -2.5f,      0.1f,
                                   3.0f,         FLT_MAX,       -FLT_MAX, FLT_MIN,    -FLT_MIN,
                                   FLT_TRUE_MIN, -FLT_TRUE_MIN, 1e-40f,   8388608.5f, 16777217.0f,
                                   INFINITY,     -INFINITY,     NAN,      1.0000001f, 0.99999994f};
std::vector<double> doubles() {
  std::vector<double> out(floats.begin(), floats.end());
  for (double v : {DBL_MAX, DBL_MIN, DBL_TRUE_MIN, -DBL_TRUE_MIN, 0.1, 1e300, -1e300, 1e-310,
                   4503599627370497.5, 9007199254740993.0})
    out.push_back(v);
  std::mt19937_64 random(3);
  for (int k = 0; k < 300; k++) out.push_back(std::bit_cast<double>(random()));
  return out;
}
std::vector<float> many_floats() {
  std::vector<float> out = floats;
  std::mt19937_64 random(4);
  for (int k = 0; k < 300; k++) out.push_back(std::bit_cast<float>(uint32_t(random())));
  return out;
}

/// Is r the value of type T nearest to the exact v, ties to even? v finite.
template <class T>
bool nearest(T r, Quad v) {
  const T inf = std::numeric_limits<T>::infinity();
  if (std::isinf(r)) {  // beyond the largest value by half an ulp or more
    const T most = std::numeric_limits<T>::max();
    const Quad half = (Quad(most) - Quad(std::nextafter(most, T(0)))) / 2;
    return r > 0 ? v >= Quad(most) + half : v <= -(Quad(most) + half);
  }
  auto distance = [&](T x) {
    const Quad e = Quad(x) - v;
    return e < 0 ? -e : e;
  };
  const Quad mine = distance(r);
  for (T other : {std::nextafter(r, inf), std::nextafter(r, -inf)}) {
    if (std::isinf(other)) continue;
    if (distance(other) < mine) return false;
    if (distance(other) == mine) {
      const bool odd = sizeof(T) == 4 ? f(float(r)) & 1 : d(double(r)) & 1;
      if (odd) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("integer rows equal arithmetic on wide integers modulo 2^w") {
  for (Type t : ints) {
    const unsigned w = bit_width(t);
    const std::vector<Bits> values = samples(t);
    size_t wrong = 0;
    for (Bits a : values) {
      for (Bits b : values) {
        for (const IntRow& row : int_rows) {
          Bits out = 0;
          const Bits args[] = {a, b};
          wrong += !evaluate(row.op, t, t, args, out) ||
                   out != wrapped(row.want(wide(a, t), wide(b, t), w), t);
        }
        for (const CompareRow& row : compare_rows) {
          Bits out = 9;
          const Bits args[] = {a, b};
          const Wide x = wide(a, t), y = wide(b, t);
          wrong += !evaluate(row.op, t, Type::b1, args, out) || out != Bits(x < y    ? row.less
                                                                            : x == y ? row.equal
                                                                                     : row.greater);
        }
        // the product of two 64-bit values fits 128 bits unsigned: multiply modulo 2^64 by halves
        const uint64_t low = (a & 0xffffffff) * (b & 0xffffffff);
        const uint64_t cross = (a >> 32) * (b & 0xffffffff) + (a & 0xffffffff) * (b >> 32);
        const Bits signed_fix = truncate(low + (cross << 32), t);
        wrong += run(Op::mul, t, {a, b}) != signed_fix;
        if (w <= 32) wrong += signed_fix != wrapped(wide(a, t) * wide(b, t), t);
      }
      const Wide v = wide(a, t);
      wrong += run(Op::neg, t, {a}) != wrapped(-v, t);
      wrong += run(Op::abs, t, {a}) != wrapped(v < 0 ? -v : v, t);
      int ones = 0;
      for (unsigned k = 0; k < bit_width(t); k++) ones += int(a >> k & 1);
      wrong += run(Op::popcount, t, {a}) != Bits(ones);
      unsigned leading = 0, trailing = 0;
      while (leading < w && !(a >> (w - 1 - leading) & 1)) leading++;
      while (trailing < w && !(a >> trailing & 1)) trailing++;
      wrong += run(Op::clz, t, {a}) != Bits(leading);
      wrong += run(Op::ctz, t, {a}) != Bits(trailing);
      wrong += run(Op::bit_not, t, {a}) != wrapped(-v - 1, t);
    }
    INFO(name(t));
    CHECK(wrong == 0);
  }
}

TEST_CASE("the corners of integer arithmetic, in numbers") {
  CHECK(run(Op::div, Type::i32, {0x80000000, 0xffffffff}) == 0x80000000);
  CHECK(run(Op::rem, Type::i32, {0x80000000, 0xffffffff}) == 0);
  CHECK(run(Op::div, Type::i64, {Bits(1) << 63, ~Bits(0)}) == Bits(1) << 63);
  CHECK(run(Op::div, Type::i32, {7, 0}) == 0);
  CHECK(run(Op::rem, Type::i32, {7, 0}) == 7);
  CHECK(run(Op::abs, Type::i8, {0x80}) == 0x80);
  CHECK(run(Op::shl, Type::i32, {1, 33}) == 2);
  CHECK(run(Op::shr, Type::i32, {0x80000000, 31}) == 0xffffffff);
  CHECK(run(Op::shr, Type::u32, {0x80000000, 31}) == 1);
  CHECK(run(Op::shl, Type::i32, {1, 0xffffffff}) == 0x80000000);  // -1 modulo 32 is 31
  CHECK(run(Op::mul, Type::u16, {0xffff, 0xffff}) == 1);
}

TEST_CASE("logic on b1") {
  for (Bits a : {0, 1}) {
    CHECK(run(Op::bit_not, Type::b1, {a}) == 1 - a);
    for (Bits b : {0, 1}) {
      CHECK(run(Op::bit_and, Type::b1, {a, b}) == a * b);
      CHECK(run(Op::bit_or, Type::b1, {a, b}) == (a + b > 0 ? 1u : 0u));
      CHECK(run(Op::bit_xor, Type::b1, {a, b}) == (a + b) % 2);
      CHECK(run(Op::eq, Type::b1, Type::b1, {a, b}) == (a == b ? 1u : 0u));
      CHECK(run(Op::ne, Type::b1, Type::b1, {a, b}) == (a == b ? 0u : 1u));
    }
  }
}

TEST_CASE("f32 arithmetic is the exact result rounded to nearest even") {
  size_t wrong = 0;
  const std::vector<float> values = many_floats();
  for (float a : values) {
    for (float b : values) {
      // f64 holds 24-bit sums and products so well that rounding its result again is right
      wrong +=
          !same(run(Op::add, Type::f32, {f(a), f(b)}), f(float(double(a) + double(b))), Type::f32);
      wrong +=
          !same(run(Op::sub, Type::f32, {f(a), f(b)}), f(float(double(a) - double(b))), Type::f32);
      wrong +=
          !same(run(Op::mul, Type::f32, {f(a), f(b)}), f(float(double(a) * double(b))), Type::f32);
      wrong +=
          !same(run(Op::div, Type::f32, {f(a), f(b)}), f(float(double(a) / double(b))), Type::f32);
    }
    wrong += !same(run(Op::sqrt, Type::f32, {f(a)}), f(float(std::sqrt(double(a)))), Type::f32);
  }
  CHECK(wrong == 0);
}

TEST_CASE("f64 arithmetic is the exact result rounded to nearest even") {
  size_t wrong = 0;
  const std::vector<double> values = doubles();
  for (double a : values) {
    for (double b : values) {
      wrong +=
          !same(run(Op::add, Type::f64, {d(a), d(b)}), d(double(Quad(a) + Quad(b))), Type::f64);
      wrong +=
          !same(run(Op::sub, Type::f64, {d(a), d(b)}), d(double(Quad(a) - Quad(b))), Type::f64);
      wrong +=
          !same(run(Op::mul, Type::f64, {d(a), d(b)}), d(double(Quad(a) * Quad(b))), Type::f64);
      wrong +=
          !same(run(Op::div, Type::f64, {d(a), d(b)}), d(double(Quad(a) / Quad(b))), Type::f64);
    }
    if (a > 0 && std::isfinite(a)) {
      // the root lies within half an ulp: compare squares of the midpoints
      const double r = f64_of(run(Op::sqrt, Type::f64, {d(a)}));
      const Quad up = (Quad(r) + Quad(std::nextafter(r, INFINITY))) / 2;
      const Quad down = (Quad(r) + Quad(std::nextafter(r, 0.0))) / 2;
      wrong += !(down * down <= Quad(a) && Quad(a) <= up * up);
    }
  }
  CHECK(wrong == 0);
  CHECK(run(Op::sqrt, Type::f64, {d(-0.0)}) == d(-0.0));
  CHECK(is_nan(run(Op::sqrt, Type::f64, {d(-1.0)}), Type::f64));
}

TEST_CASE("fma rounds once") {
  std::mt19937_64 random(5);
  size_t wrong = 0;
  for (int n = 0; n < 20000; n++) {
    const int64_t a = int64_t(random() >> 11), b = -int64_t(random() >> 11);
    const double c = double(int64_t(random())) * 2048.0;
    const Wide exact = Wide(a) * b + Wide(c);  // |c| < 2^74 and whole
    wrong += run(Op::fma, Type::f64, {d(double(a)), d(double(b)), d(c)}) != d(double(exact));
    const int32_t x = int32_t(random() >> 40), y = int32_t(random() >> 40);
    const float z = float(int32_t(random()));
    const float once = float(Wide(x) * y + Wide(z));
    wrong += run(Op::fma, Type::f32, {f(float(x)), f(float(y)), f(z)}) != f(once);
  }
  CHECK(wrong == 0);
  // (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24, which rounding the product first loses
  const float x = 1 + 0x1p-12f;
  CHECK(run(Op::fma, Type::f32, {f(x), f(x), f(-(1 + 0x1p-11f))}) == f(0x1p-24f));
  // a product halfway between two f32, moved by a term far below
  CHECK(run(Op::fma, Type::f32, {f(1 + 0x1p-23f), f(1.5f), f(-0x1p-100f)}) ==
        f(float(1.5 + 0x1p-23)));
}

TEST_CASE("signs of floats are bits") {
  for (float a : floats) {
    CHECK(run(Op::neg, Type::f32, {f(a)}) == (f(a) ^ 0x80000000));
    CHECK(run(Op::abs, Type::f32, {f(a)}) == (f(a) & 0x7fffffff));
    for (float b : floats)
      CHECK(run(Op::copysign, Type::f32, {f(a), f(b)}) ==
            ((f(a) & 0x7fffffff) | (f(b) & 0x80000000)));
  }
  for (double a : doubles()) {
    REQUIRE(run(Op::neg, Type::f64, {d(a)}) == (d(a) ^ (Bits(1) << 63)));
    REQUIRE(run(Op::abs, Type::f64, {d(a)}) == (d(a) & ~(Bits(1) << 63)));
  }
}

TEST_CASE("min and max are C++'s, fmin and fmax skip NaN and order zeros") {
  const float nan = NAN;
  auto two = [](Op op, float a, float b) { return run(op, Type::f32, {f(a), f(b)}); };
  CHECK(two(Op::min, nan, 1) == f(nan));  // 1 < NaN is false: the first
  CHECK(two(Op::min, 1, nan) == f(1));
  CHECK(two(Op::max, nan, 1) == f(nan));
  CHECK(two(Op::min, 0.0f, -0.0f) == f(0.0f));
  CHECK(two(Op::max, -0.0f, 0.0f) == f(-0.0f));
  CHECK(two(Op::min, 2, 1) == f(1));
  CHECK(two(Op::max, 2, 1) == f(2));
  for (bool swapped : {false, true}) {
    auto either = [&](Op op, float a, float b) { return swapped ? two(op, b, a) : two(op, a, b); };
    CHECK(either(Op::fmin, nan, 1) == f(1));
    CHECK(either(Op::fmax, nan, 1) == f(1));
    CHECK(either(Op::fmin, 0.0f, -0.0f) == f(-0.0f));
    CHECK(either(Op::fmax, 0.0f, -0.0f) == f(0.0f));
    CHECK(either(Op::fmin, -INFINITY, 1) == f(-INFINITY));
    CHECK(either(Op::fmax, 3, 4) == f(4));
    CHECK(either(Op::fmin, 3, 4) == f(3));
  }
  CHECK(is_nan(two(Op::fmin, nan, nan), Type::f32));
}

TEST_CASE("rounding to whole numbers") {
  struct Row {
    double v, floor, ceil, trunc, round;
  };
  const Row rows[] = {{0.5, 0, 1, 0, 0},
                      {1.5, 1, 2, 1, 2},
                      {2.5, 2, 3, 2, 2},
                      {-0.5, -1, -0.0, -0.0, -0.0},
                      {-1.5, -2, -1, -1, -2},
                      {-2.5, -3, -2, -2, -2},
                      {0.3, 0, 1, 0, 0},
                      {0.7, 0, 1, 0, 1},
                      {-0.0, -0.0, -0.0, -0.0, -0.0},
                      {8388607.5, 8388607, 8388608, 8388607, 8388608},
                      {3, 3, 3, 3, 3},
                      {-7.25, -8, -7, -7, -7},
                      {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}};
  for (const Row& r : rows) {
    CHECK(run(Op::floor, Type::f64, {d(r.v)}) == d(r.floor));
    CHECK(run(Op::ceil, Type::f64, {d(r.v)}) == d(r.ceil));
    CHECK(run(Op::trunc, Type::f64, {d(r.v)}) == d(r.trunc));
    CHECK(run(Op::round, Type::f64, {d(r.v)}) == d(r.round));
    CHECK(run(Op::floor, Type::f32, {f(float(r.v))}) == f(float(r.floor)));
    CHECK(run(Op::ceil, Type::f32, {f(float(r.v))}) == f(float(r.ceil)));
    CHECK(run(Op::trunc, Type::f32, {f(float(r.v))}) == f(float(r.trunc)));
    CHECK(run(Op::round, Type::f32, {f(float(r.v))}) == f(float(r.round)));
  }
}

TEST_CASE("float comparisons know NaN") {
  for (float a : floats) {
    for (float b : floats) {
      const bool unordered = std::isnan(a) || std::isnan(b);
      for (const CompareRow& row : compare_rows) {
        bool want = row.op == Op::ne;
        if (!unordered) {
          const Quad x = a, y = b;
          want = x < y ? row.less : x == y ? row.equal : row.greater;
        }
        REQUIRE(run(row.op, Type::f32, Type::b1, {f(a), f(b)}) == Bits(want));
      }
    }
  }
}

TEST_CASE("select and bitcast move bits") {
  CHECK(run(Op::select, Type::f32, {1, 0x7fc00001, 2}) == 0x7fc00001);
  CHECK(run(Op::select, Type::f32, {0, 0x7fc00001, 2}) == 2);
  CHECK(run(Op::bitcast, Type::f32, Type::i32, {0x7fa00001}) == 0x7fa00001);
  CHECK(run(Op::bitcast, Type::u64, Type::f64, {42}) == 42);
}

TEST_CASE("integer to integer conversion truncates or extends by the source's sign") {
  for (Type from : ints) {
    for (Type to : ints) {
      size_t wrong = 0;
      for (Bits a : samples(from)) {
        wrong += run(Op::convert, from, to, {a}) != wrapped(wide(a, from), to);
        const Bits args[] = {a};
        wrong += fails(Op::convert, from, to, args);
      }
      INFO(name(from) << " to " << name(to));
      CHECK(wrong == 0);
    }
    CHECK(run(Op::convert, from, Type::b1, {0}) == 0);
    CHECK(run(Op::convert, from, Type::b1, {2}) == 1);
    CHECK(run(Op::convert, Type::b1, from, {1}) == 1);
  }
}

TEST_CASE("float to integer conversion truncates, saturates, and makes NaN 0; checked mode fails") {
  size_t wrong = 0;
  std::vector<double> values = doubles();
  for (int k = 0; k <= 65; k++)
    for (double delta : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
      values.push_back(std::ldexp(1.0, k) + delta);
      values.push_back(-std::ldexp(1.0, k) + delta);
    }
  auto check = [&](Type from, Bits bits, double v) {
    for (Type to : ints) {
      const Wide half = Wide(1) << (bit_width(to) - 1);
      const Wide lo = is_signed(to) ? -half : 0, hi = is_signed(to) ? half - 1 : 2 * half - 1;
      Wide want = 0;
      bool fail = true;
      if (std::isnan(v)) {
      } else if (std::fabs(v) > 1e30) {
        want = v < 0 ? lo : hi;
      } else {
        want = Wide(v);
        fail = want < lo || want > hi;
        want = want < lo ? lo : want > hi ? hi : want;
      }
      const Bits args[] = {bits};
      wrong += run(Op::convert, from, to, {bits}) != wrapped(want, to);
      wrong += fails(Op::convert, from, to, args) != fail;
    }
    wrong += run(Op::convert, from, Type::b1, {bits}) != Bits(v == 0 ? 0 : 1);
  };
  for (double v : values) {
    check(Type::f64, d(v), v);
    const float narrow = float(v);
    check(Type::f32, f(narrow), double(narrow));
  }
  CHECK(wrong == 0);
}

TEST_CASE("conversion to a float rounds to nearest even") {
  size_t wrong = 0;
  for (Type from : ints) {
    std::vector<Bits> values = samples(from);
    std::mt19937_64 random(6);
    for (int k = 0; k < 2000; k++)
      values.push_back(truncate((random() >> (random() % 60)) | (random() % 2), from));
    for (Bits a : values) {
      const Quad exact = Quad(wide(a, from));
      wrong += !nearest(f32_of(run(Op::convert, from, Type::f32, {a})), exact);
      wrong += !nearest(f64_of(run(Op::convert, from, Type::f64, {a})), exact);
    }
  }
  CHECK(wrong == 0);
  for (double v : doubles()) {
    const Bits r = run(Op::convert, Type::f64, Type::f32, {d(v)});
    if (std::isnan(v))
      REQUIRE(is_nan(r, Type::f32));
    else if (std::isinf(v))
      REQUIRE(r == f(float(v)));
    else
      REQUIRE(nearest(f32_of(r), Quad(v)));
  }
  CHECK(run(Op::convert, Type::f64, Type::f32, {d(16777217.0)}) == f(16777216.0f));
  CHECK(run(Op::convert, Type::f64, Type::f32, {d(16777219.0)}) == f(16777220.0f));
  CHECK(run(Op::convert, Type::f64, Type::f32, {d(-0.0)}) == f(-0.0f));
  CHECK(run(Op::convert, Type::b1, Type::f64, {1}) == d(1));
}

TEST_CASE("rows without a meaning on bits, and classes a row does not take, are refused") {
  Bits out = 0;
  const Bits args[] = {1, 1, 1};
  for (int k = 0; k < op_count; k++) {
    const OpInfo& row = info(Op(k));
    const bool element_wise = row.rule != OperandRule::special;
    for (Type t : {Type::b1, Type::i32, Type::u8, Type::f32, Type::f64}) {
      const bool taken =
          (t == Type::b1 && row.bools) || (is_int(t) && row.ints) || (is_float(t) && row.floats);
      const Type result = row.rule == OperandRule::compare ? Type::b1 : t;
      INFO(row.name << " " << name(t));
      if (row.rule != OperandRule::bitcast)
        CHECK(evaluate(Op(k), t, result, args, out) == (element_wise && taken && !row.library));
    }
    if (row.rule == OperandRule::same)
      CHECK_FALSE(evaluate(Op(k), Type::address, Type::address, args, out));
  }
}

TEST_CASE("an identity changes no contribution") {
  const std::vector<Type> all = {Type::b1,  Type::i8,  Type::i16, Type::i32, Type::i64, Type::u8,
                                 Type::u16, Type::u32, Type::u64, Type::f32, Type::f64};
  for (Type t : all) {
    std::vector<Bits> values = {0, 1};
    if (is_int(t)) values = samples(t);
    if (t == Type::f32)
      for (float v : many_floats()) values.push_back(f(v));
    if (t == Type::f64)
      for (double v : doubles()) values.push_back(d(v));
    for (AtomicOp op : {AtomicOp::add, AtomicOp::mul, AtomicOp::min, AtomicOp::max,
                        AtomicOp::bit_and, AtomicOp::bit_or, AtomicOp::bit_xor}) {
      const bool bits = op >= AtomicOp::bit_and;
      if (bits ? is_float(t) : t == Type::b1) continue;
      size_t wrong = 0;
      for (Bits v : values)
        wrong += !same(combine(op, t, identity(op, t), v), v, t) ||
                 !same(combine(op, t, v, identity(op, t)), v, t);
      INFO(name(op) << " " << name(t));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("one step of an atomic") {
  CHECK(combine(AtomicOp::add, Type::u8, 250, 10) == 4);
  CHECK(combine(AtomicOp::mul, Type::i32, 7, 6) == 42);
  CHECK(combine(AtomicOp::min, Type::i8, 0xff, 1) == 0xff);
  CHECK(combine(AtomicOp::min, Type::u8, 0xff, 1) == 1);
  CHECK(combine(AtomicOp::max, Type::f32, f(NAN), f(2)) == f(2));
  CHECK(combine(AtomicOp::min, Type::f32, f(0.0f), f(-0.0f)) == f(-0.0f));
  CHECK(combine(AtomicOp::bit_xor, Type::u16, 0xff00, 0x0ff0) == 0xf0f0);
  CHECK(combine(AtomicOp::exchange, Type::i32, 1, 2) == 2);
  CHECK(combine(AtomicOp::load, Type::i32, 1, 2) == 1);
}

TEST_CASE("division by zero fails in checked mode, of integers only") {
  const Bits zero[] = {5, 0}, one[] = {5, 1}, corner[] = {0x80000000, 0xffffffff};
  CHECK(fails(Op::div, Type::i32, Type::i32, zero));
  CHECK(fails(Op::rem, Type::u64, Type::u64, zero));
  CHECK_FALSE(fails(Op::div, Type::i32, Type::i32, one));
  CHECK_FALSE(fails(Op::div, Type::i32, Type::i32, corner));
  CHECK_FALSE(fails(Op::div, Type::f32, Type::f32, zero));
  CHECK_FALSE(fails(Op::add, Type::i32, Type::i32, zero));
}
