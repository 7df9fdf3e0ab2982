// Bits and powers of integers, against counting and repeated multiplication.
#include <climits>
#include <cstdint>
#include <limits>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {

template <class T>
int leading_zeros(T v) {
  int n = 0, width = 8 * int(sizeof(T));
  while (n < width && !(uint64_t(v) >> (width - 1 - n) & 1)) n++;
  return n;
}
template <class T>
int trailing_zeros(T v) {
  int n = 0, width = 8 * int(sizeof(T));
  while (n < width && !(uint64_t(v) >> n & 1)) n++;
  return n;
}
/// By repeated multiplication, modulo 2^width; by its definition below 0.
template <class S>
S power(S base, int64_t exponent) {
  using Bits = std::make_unsigned_t<S>;
  if (exponent < 0) {
    if (base == S(1)) return 1;
    if (std::is_signed_v<S> && base == S(-1)) return exponent % 2 == 0 ? S(1) : S(-1);
    return 0;
  }
  Bits out = 1;
  for (int64_t k = 0; k < exponent; k++) out = Bits(out * Bits(base));
  return S(out);
}

template <class T>
std::vector<T> numbers() {
  std::vector<T> out = {0,
                        1,
                        2,
                        3,
                        7,
                        T(-1),
                        T(-2),
                        T(-3),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::min()};
  for (int k = 0; k < 8 * int(sizeof(T)); k += 3) {
    out.push_back(T(uint64_t(1) << k));
    out.push_back(T((uint64_t(5) << k) - 1));
  }
  return out;
}

template <class T>
void counts() {
  const std::vector<T> in = numbers<T>();
  const int n = int(in.size());
  on_every_device([&](qn::Device& device) {
    qn::Field<T> x{device, {n}}, clzs{device, {n}}, ctzs{device, {n}}, pops{device, {n}};
    x.copy_from(in);
    qn::Kernel k = [&] {
      for (auto i : x) {
        clzs[i] = clz(x[i]);
        ctzs[i] = ctz(x[i]);
        pops[i] = popcount(x[i]);
      }
    };
    k();
    for (int i = 0; i < n; i++) {
      const T v = in[size_t(i)];
      INFO(int64_t(v));
      REQUIRE(clzs.at(i) == T(leading_zeros(v)));
      REQUIRE(ctzs.at(i) == T(trailing_zeros(v)));
      REQUIRE(clz(v) == T(leading_zeros(v)));
      REQUIRE(ctz(v) == T(trailing_zeros(v)));
      REQUIRE(pops.at(i) == popcount(v));
    }
  });
}

template <class S>
void powers() {
  const std::vector<S> bases = numbers<S>();
  const std::vector<int> exponents = {0, 1, 2, 3, 5, 31, 32, 63, 64, 100, -1, -2, -7};
  const int n = int(bases.size()), m = int(exponents.size());
  on_every_device([&](qn::Device& device) {
    qn::Field<S> base{device, {n}};
    qn::Field<int> exponent{device, {m}};
    qn::Field<S, 2> out{device, {n, m}}, fixed{device, {n, m}};
    base.copy_from(bases);
    exponent.copy_from(exponents);
    qn::Kernel k = [&] {
      for (auto [i, j] : out) out(i, j) = pow(base[i], exponent[j]);
      for (auto i : base)
        for (int j = 0; j < m; j++) fixed(i, j) = pow(base[i], exponents[size_t(j)]);
    };
    k();
    for (int i = 0; i < n; i++)
      for (int j = 0; j < m; j++) {
        const S expected = power(bases[size_t(i)], exponents[size_t(j)]);
        INFO(int64_t(bases[size_t(i)]) << " to the power " << exponents[size_t(j)]);
        REQUIRE(out.at(i, j) == expected);
        REQUIRE(fixed.at(i, j) == expected);
        REQUIRE(pow(bases[size_t(i)], exponents[size_t(j)]) == expected);
      }
  });
}

/// Quotients and remainders by C++'s own operators on 64 bits, where nothing overflows; a / 0 is 0
/// and the remainder a.
template <class T>
void check_divisions(qn::Device& device) {
  std::vector<T> some = {0, 1, 2, 3, 7, 46340, 46341, 65535, 65536, 16777217};
  for (int k = 0; k < 4; k++) some.push_back(T(std::numeric_limits<T>::max() - T(k)));
  for (int k = 0; k < 4; k++) some.push_back(T(std::numeric_limits<T>::min() + T(k)));
  for (int k = 1; k < 10; k++) some.push_back(T(-some[size_t(k)]));
  std::vector<T> x, y;
  for (T a : some)
    for (T b : some) x.push_back(a), y.push_back(b);
  std::mt19937 random(7);
  for (int k = 0; k < 4000; k++) {
    const T divisor = T(random() >> random() % 32);
    const uint64_t about = uint64_t(divisor) * (random() >> 12) - uint64_t(k / 2 % 2);
    x.push_back(k % 2 ? T(random()) : T(about));
    y.push_back(divisor);
  }
  const auto n = int64_t(x.size());
  qn::Field<T> a{device, {n}}, b{device, {n}}, q{device, {n}}, r{device, {n}}, by_one{device, {n}};
  a.copy_from(x);
  b.copy_from(y);
  const qn::Options unchecked = {.checked = false};
  qn::Kernel divide{[&] {
                      for (auto i : a) {
                        q[i] = a[i] / b[i];
                        r[i] = a[i] % b[i];
                      }
                    },
                    unchecked};
  qn::Kernel divide_by{[&](qn::Val<T> divisor) {
                         for (auto i : a) by_one[i] = a[i] / divisor;
                       },
                       unchecked};
  divide();
  divide_by(T(46341));
  for (size_t k = 0; k < x.size(); k++) {
    INFO(x[k] << " by " << y[k]);
    const int64_t whole = y[k] == 0 ? 0 : int64_t(x[k]) / int64_t(y[k]);
    REQUIRE(q.at(k) == T(whole));
    REQUIRE(r.at(k) == T(int64_t(x[k]) - whole * int64_t(y[k])));
    REQUIRE(by_one.at(k) == T(int64_t(x[k]) / 46341));
  }
}

}  // namespace

TEST_CASE("a number kept within bounds is compared with what it was made of") {
  on_every_device([](qn::Device& device) {
    std::vector<int> x, y;
    for (int a : {INT_MIN, -7, -2, -1, 0, 1, 2, 5, 6, 7, INT_MAX})
      for (int b : {INT_MIN, -7, -2, -1, 0, 1, 2, 5, 6, 7, INT_MAX}) x.push_back(a), y.push_back(b);
    const auto n = int64_t(x.size());
    qn::Field<int> a{device, {n}}, b{device, {n}}, found{device, {n}};
    a.copy_from(x);
    b.copy_from(y);
    qn::Kernel compare = [&] {
      for (auto i : a) {
        I32 low = max(min(a[i], b[i]), 0), high = max(max(a[i], b[i]), 0);
        found[i] = select(low == a[i], 1, 0) + select(low == b[i], 2, 0) +
                   select(low != b[i], 4, 0) + select(high == a[i], 8, 0) +
                   select(high == b[i], 16, 0) + select(low == high, 32, 0);
      }
    };
    compare();
    for (size_t k = 0; k < x.size(); k++) {
      INFO(x[k] << ", " << y[k]);
      const int low = std::max(std::min(x[k], y[k]), 0), high = std::max(std::max(x[k], y[k]), 0);
      CHECK(found.at(k) == (low == x[k]) + 2 * (low == y[k]) + 4 * (low != y[k]) +
                               8 * (high == x[k]) + 16 * (high == y[k]) + 32 * (low == high));
    }
  });
}

TEST_CASE("zeros before and after the ones of an integer") {
  counts<int8_t>();
  counts<uint16_t>();
  counts<int32_t>();
  counts<uint32_t>();
  counts<int64_t>();
  counts<uint64_t>();
}

TEST_CASE("powers of integers") {
  powers<int32_t>();
  powers<uint32_t>();
  powers<int64_t>();
  powers<uint64_t>();
}

TEST_CASE("integer powers of narrow types, vectors and host bases") {
  on_every_device([](qn::Device& device) {
    qn::Field<int> x{device, {7}};
    qn::Field<ivec2> y{device, {7}};
    qn::Kernel k = [&](I8 small, U64 large) {
      for (auto i : x) {
        static_assert(std::is_same_v<decltype(pow(small, i)), I32>);
        static_assert(std::is_same_v<decltype(pow(i, large)), I32>);
        x[i] = pow(small, i) + 1000 * pow(2, i) + pow(i, large);
        y[i] = pow(vec(i, 3), ivec2(2, 3)) + pow(ivec2(2, 3), i);
      }
    };
    k(-3, 3);
    for (int i = 0; i < 7; i++) {
      REQUIRE(x.at(i) == power(-3, i) + 1000 * power(2, i) + i * i * i);
      REQUIRE(y.at(i) == ivec2(i * i + power(2, i), 27 + power(3, i)));
    }
  });
}

TEST_CASE("quotients and remainders in parallel loops are exact") {
  on_every_device([](qn::Device& device) {
    check_divisions<int32_t>(device);
    check_divisions<uint32_t>(device);
  });
}
