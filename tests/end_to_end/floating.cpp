// Floats taken apart and put together, against the C library's exact functions.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
template <class T>
void check(const qn::Device& device) {
  using L = std::numeric_limits<T>;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::vector<T> xs;
  std::vector<int> shifts;
  for (T x : {T(0), T(-0.0), T(1), T(-1), L::infinity(), -L::infinity(), L::quiet_NaN(),
              L::denorm_min(), L::min(), L::max(), L::min() * T(0.75), T(3.7), T(-1e-30)})
    for (int n : {0,    1,     -1,   5,     -30,     -126,       -127,      -149,     -150,  -151,
                  127,  128,   200,  300,   -300,    1023,       1024,      -1022,    -1074, -1075,
                  2000, -2000, 2200, -2200, 1 << 30, -(1 << 30), INT32_MAX, INT32_MIN}) {
      xs.push_back(x);
      shifts.push_back(n);
    }
  std::mt19937_64 random(7);
  for (int k = 0; k < 3000; k++) {
    xs.push_back(std::bit_cast<T>(Bits(random())));
    shifts.push_back(int(random() % 700) - 350);
  }
  const int n = int(xs.size());
  qn::Field<T> x{device, {n}}, scaled{device, {n}}, fraction{device, {n}}, next{device, {n}};
  qn::Field<int> shift{device, {n}}, exponent{device, {n}}, kind{device, {n}};
  x.copy_from(xs);
  shift.copy_from(shifts);
  qn::Kernel work = [&] {
    for (auto i : x) {
      qn::Val<T> v = x[i];
      scaled[i] = ldexp(v, shift[i]);
      auto [f, e] = frexp(v);
      fraction[i] = f;
      exponent[i] = e;
      next[i] = nextafter(v, T(1.5));
      kind[i] = select(isnan(v), 1, 0) + select(isinf(v), 2, 0) + select(isfinite(v), 4, 0) +
                select(isnormal(v), 8, 0) + select(signbit(v), 16, 0);
    }
  };
  work();
  const std::vector<T> got_scaled = qn::to_vector(scaled), got_fraction = qn::to_vector(fraction),
                       got_next = qn::to_vector(next);
  const std::vector<int> got_exponent = qn::to_vector(exponent), got_kind = qn::to_vector(kind);
  auto same = [](T a, T b) {
    return (std::isnan(a) && std::isnan(b)) || std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
  };
  for (size_t k = 0; k < xs.size(); k++) {
    T v = xs[k];
    int e = 0;
    T f = std::frexp(v, &e);
    if (!std::isfinite(v)) e = 0;
    INFO("x = " << v << ", n = " << shifts[k] << ": ldexp " << got_scaled[k] << ", frexp "
                << got_fraction[k] << " " << got_exponent[k] << ", next " << got_next[k]);
    CHECK(same(got_scaled[k], std::ldexp(v, shifts[k])));
    CHECK(same(got_fraction[k], f));
    CHECK(got_exponent[k] == e);
    CHECK(same(got_next[k], std::nextafter(v, T(1.5))));
    bool negative = std::isnan(v) ? (got_kind[k] & 16) != 0 : std::signbit(v);
    CHECK(got_kind[k] == std::isnan(v) + 2 * std::isinf(v) + 4 * std::isfinite(v) +
                             8 * std::isnormal(v) + 16 * negative);
  }
}
}  // namespace

TEST_CASE("ldexp, frexp, nextafter and classification agree with C, f32") {
  on_every_device([](qn::Device& device) { check<float>(device); });
}
TEST_CASE("ldexp, frexp, nextafter and classification agree with C, f64") {
  on_every_device([](qn::Device& device) { check<double>(device); });
}
TEST_CASE("classification takes vectors by component, and host operands") {
  qn::Field<int> out{qn::Device(), {1}};
  qn::Kernel work = [&](Val<vec3> v) {
    for (auto i : out) out[i] = select(any(isnan(v)), 1, 0) + select(all(isfinite(v)), 2, 0);
  };
  work(vec3(1, 2, 3));
  CHECK(out.at(0) == 2);
  work(vec3(1, std::numeric_limits<float>::quiet_NaN(), 3));
  CHECK(out.at(0) == 1);
  CHECK(isinf(-std::numeric_limits<float>::infinity()));
  CHECK(signbit(-0.0));
  CHECK(!isnormal(1e-310));
}
