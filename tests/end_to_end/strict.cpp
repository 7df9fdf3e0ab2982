// Strict mode: whole programs give the same bits on every device.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
template <class T>
std::vector<uint64_t> bits(const std::vector<T>& v) {
  std::vector<uint64_t> out;
  for (T x : v) {
    if (std::isnan(x)) x = std::numeric_limits<T>::quiet_NaN();  // payloads are unspecified
    uint64_t b = 0;
    std::memcpy(&b, &x, sizeof x);
    out.push_back(b);
  }
  return out;
}

/// Results of `program` on every device, each compared with the interpreter's.
template <class Program>
void same_bits(Program program) {
  qn::Device interpreter("interpreter");
  const std::vector<uint64_t> wanted = program(interpreter);
  REQUIRE(!wanted.empty());
  on_every_device([&](qn::Device& device) {
    const std::vector<uint64_t> found = program(device);
    REQUIRE(found.size() == wanted.size());
    size_t differ = 0;
    for (size_t k = 0; k < found.size(); k++) differ += found[k] != wanted[k];
    CHECK(differ == 0);
  });
}
}  // namespace

TEMPLATE_TEST_CASE("a chaotic map with every basic operation", "", float, double) {
  same_bits([](qn::Device& device) {
    using T = TestType;
    const int n = 600;
    qn::Field<T> x{device, {n}};
    qn::Kernel k{[&] {
                   for (auto i : x) {
                     Var<T> v = (cast<T>(i) + T(0.25)) / T(n);
                     for (auto r : range(60)) {
                       v = T(3.99) * v * (1 - v);  // amplifies every lost bit
                       v = v + sqrt(v) / (cast<T>(r) + 3) - floor(v);
                       v = abs(v - T(0.5)) + fma(v, v, T(-0.125));
                       v = v - floor(v);
                     }
                     x[i] = v;
                   }
                 },
                 qn::Options{.strict = true}};
    k();
    return bits(qn::to_vector(x));
  });
}

TEMPLATE_TEST_CASE("functions of the math library inside an iteration", "", float, double) {
  same_bits([](qn::Device& device) {
    using T = TestType;
    const int n = 300;
    qn::Field<T> x{device, {n}};
    qn::Kernel k{[&] {
                   for (auto i : x) {
                     Var<T> v = cast<T>(i) * T(0.37) - 40;
                     for (auto r : range(8))
                       v = 3 * sin(v * 5) + cos(v + r) + exp(-v * v) + log(abs(v) + T(0.1)) +
                           atan2(v, T(0.3)) + pow(abs(v) + T(0.01), T(0.7));
                     x[i] = v;
                   }
                 },
                 qn::Options{.strict = true}};
    k();
    return bits(qn::to_vector(x));
  });
}

TEMPLATE_TEST_CASE("sums of any length, the order of which shows", "", float, double) {
  same_bits([](qn::Device& device) {
    using T = TestType;
    std::vector<T> sums;
    for (int n : {0, 1, 33, 1024, 1025, 5000, 70000}) {
      qn::Field<T> x{device, {std::max(n, 1)}};
      qn::Kernel k{[&](I32 count) {
                     Var<T> s = T(0.1), p = T(1);
                     for (auto i : range(count)) {
                       auto v = 1 / (cast<T>(i) + T(0.7));
                       s += v * select(i % 3 == 0, T(-1), T(1));
                       p *= 1 + v * T(1e-3);
                     }
                     return result(s, p);
                   },
                   qn::Options{.strict = true}};
      auto [s, p] = k(n);
      sums.push_back(s);
      sums.push_back(p);
    }
    return bits(sums);
  });
}

TEST_CASE("subnormal numbers are kept") {
  same_bits([](qn::Device& device) {
    qn::Field<float> x{device, {200}};
    qn::Kernel k{[&] {
                   for (auto i : x) x[i] = 1e-38f / (cast<float>(i) + 1) * 0.37f + 1e-45f;
                 },
                 qn::Options{.strict = true}};
    k();
    std::vector<float> v = qn::to_vector(x);
    for (int i = 0; i < 200; i++) {
      volatile float a = 1e-38f / (float(i) + 1), b = a * 0.37f;
      REQUIRE(v[size_t(i)] == b + 1e-45f);
    }
    return bits(v);
  });
}

TEST_CASE("a float atomic whose order matters is refused, an own element's is not") {
  on_every_device([](qn::Device& device) {
    qn::Field<float> x{device, {8}}, sum{device, {1}};
    int line = 0;
    qn::Kernel k{[&] {
                   for (auto i : x) {
                     line = __LINE__ + 1;
                     sum[0] += x[i];
                   }
                 },
                 qn::Options{.strict = true}};
    std::string text;
    int at = 0;
    try {
      k();
    } catch (const qn::Error& e) {
      text = e.what();
      at = e.loc().line;
    }
    CHECK_THAT(text, contains("order"));
    CHECK(at == line);
    qn::Kernel own{[&] {
                     for (auto i : x) x[i] += 1.5f;
                   },
                   qn::Options{.strict = true}};
    own();
    CHECK(qn::to_vector(x) == std::vector<float>(8, 1.5f));
  });
}
