// The replacements for fma, division and square root against the host's correctly rounded ones.
#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/math/evaluator.h"
#include "tests/math/reference.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

namespace {
template <class T>
T value(Bits b) {
  return sizeof(T) == 4 ? T(f32_of(b)) : T(f64_of(b));
}

template <class T>
bool same(T a, T b) {
  return bits_of(a) == bits_of(b) || (std::isnan(a) && std::isnan(b));
}

template <class T>
const std::vector<T>& specials() {
  using L = std::numeric_limits<T>;
  static const std::vector<T> all = [] {
    std::vector<T> v;
    for (T x : {T(0), T(1), T(1) + L::epsilon(), T(1) - L::epsilon() / 2, T(1.5), T(2), T(3),
                L::denorm_min(), L::denorm_min() * 3, L::min(), L::min() - L::denorm_min(),
                L::min() * 2, L::max(), L::max() / 2, std::sqrt(L::min()), std::sqrt(L::max()),
                L::infinity(), L::quiet_NaN()}) {
      v.push_back(x);
      v.push_back(-x);
    }
    return v;
  }();
  return all;
}

/// A number with few significant bits (so that sums and products meet in ties) and an exponent
/// within `spread` of `centre`.
template <class T>
T hard(Random& random, int centre, int spread) {
  constexpr int digits = std::numeric_limits<T>::digits;
  uint64_t mantissa = random.bits() >> (64 - digits);
  switch (random.bits() % 4) {
    case 0: mantissa &= ~uint64_t(0) << (random.bits() % digits); break;
    case 1: mantissa |= (uint64_t(1) << (random.bits() % digits)) - 1; break;
    case 2: mantissa = uint64_t(1) << (random.bits() % digits); break;
    default: break;
  }
  int e = centre - digits + int(random.bits() % uint64_t(2 * spread + 1)) - spread;
  T x = T(std::ldexp(double(mantissa), e));
  return random.bits() & 1 ? -x : x;
}

template <class T>
void check_fma(int count) {
  Evaluator run(fma_function(sizeof(T) == 4 ? Type::f32 : Type::f64));
  size_t wrong = 0;
  auto one = [&](T a, T b, T c) {
    T got = value<T>(run({bits_of(a), bits_of(b), bits_of(c)}));
    T wanted = std::fma(a, b, c);
    if (!same(got, wanted) && wrong++ < 5) {
      INFO(std::hexfloat << "fma(" << a << ", " << b << ", " << c << ") = " << got << ", wanted "
                         << wanted);
      CHECK(false);
    }
  };
  for (T a : specials<T>())
    for (T b : specials<T>())
      for (T c : specials<T>()) one(a, b, c);
  Random random(11);
  constexpr int low = std::numeric_limits<T>::min_exponent;
  constexpr int high = std::numeric_limits<T>::max_exponent;
  constexpr int digits = std::numeric_limits<T>::digits;
  for (int k = 0; k < count; k++) {
    T a = hard<T>(random, 0, 20), b = hard<T>(random, 0, 20);
    one(a, b, hard<T>(random, 0, 2 * digits));
    one(a, b, T(-(a * b)));  // cancellation to the rounding error
    one(a, b, std::nextafter(T(-(a * b)), T(random.bits() & 1 ? 100 : -100)));
    // results among the subnormals and near overflow
    T small = hard<T>(random, low / 2, 10), tiny = hard<T>(random, low / 2 - 10, digits);
    one(small, tiny, hard<T>(random, low - 10, digits));
    one(hard<T>(random, high / 2, 2), hard<T>(random, high / 2, 2), hard<T>(random, high - 3, 3));
    one(value<T>(truncate(random.bits(), sizeof(T) == 4 ? Type::f32 : Type::f64)),
        value<T>(truncate(random.bits(), sizeof(T) == 4 ? Type::f32 : Type::f64)),
        value<T>(truncate(random.bits(), sizeof(T) == 4 ? Type::f32 : Type::f64)));
  }
  CHECK(wrong == 0);
}
}  // namespace

TEST_CASE("fma of f32 without fma is correctly rounded") { check_fma<float>(400000); }
TEST_CASE("fma of f64 without fma is correctly rounded") { check_fma<double>(250000); }

TEST_CASE("division and square root of f32 through f64 are correctly rounded") {
  Evaluator div(div_function(Type::f32)), root(sqrt_function(Type::f32));
  size_t wrong = 0;
  auto one = [&](float a, float b) {
    wrong += !same(value<float>(div({bits_of(a), bits_of(b)})), a / b);
    wrong += !same(value<float>(root({bits_of(a)})), std::sqrt(a));
  };
  for (float a : specials<float>())
    for (float b : specials<float>()) one(a, b);
  Random random(12);
  for (int k = 0; k < 2000000; k++) {
    one(f32_of(random.bits() & 0xffffffff), f32_of(random.bits() & 0xffffffff));
    one(hard<float>(random, -120, 40), hard<float>(random, 10, 30));
  }
  CHECK(wrong == 0);
}
