// The functions of the library on every device: within their bounds of the host's, and in strict
// mode the same bits as on the interpreter; whole programs made of them too.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include <quern/host.h>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
template <class T>
std::vector<T> arguments() {
  using L = std::numeric_limits<T>;
  std::vector<T> all = {T(0),           T(-0.0),       T(1),      T(-1),           T(0.5),
                        T(2),           T(3),          T(-3),     L::min(),        -L::min(),
                        L::max(),       -L::max(),     T(710),    T(-745),         T(88.7),
                        T(-103),        T(1e10),       T(-2.5e7), L::denorm_min(), L::infinity(),
                        -L::infinity(), L::quiet_NaN()};
  for (int k = 0; k < 80; k++) {
    T v = T(std::ldexp(1 + 0.37 * k, (k * 7) % 41 - 20));
    all.push_back(k % 3 == 0 ? -v : v);
  }
  return all;
}

template <class T>
bool same_bits(T a, T b) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  return std::bit_cast<U>(a) == std::bit_cast<U>(b) || (std::isnan(a) && std::isnan(b));
}

/// Within `ulps` units in the last place; special values exactly.
template <class T>
bool near(T got, T wanted, int ulps) {
  if (std::isnan(wanted) || std::isinf(wanted) || wanted == 0) return same_bits(got, wanted);
  T step =
      std::nextafter(std::fabs(wanted), std::numeric_limits<T>::infinity()) - std::fabs(wanted);
  return std::fabs(got - wanted) <= T(ulps) * step;
}

/// f(x, y) for all arguments, on a device.
template <class T, class F>
std::vector<T> values(const qn::Device& device, bool strict, F f) {
  std::vector<T> xs = arguments<T>(), ys(xs.rbegin(), xs.rend());
  const int n = int(xs.size());
  qn::Field<T> x{device, {n}}, y{device, {n}}, out{device, {n}};
  x.copy_from(xs);
  y.copy_from(ys);
  qn::Options options;
  options.strict = strict;
  qn::Kernel work = {[&] {
                       for (auto i : x) out[i] = f(x[i], y[i]);
                     },
                     options};
  work();
  return qn::to_vector(out);
}

/// `f` on the device against itself on the interpreter, and against the host's `wanted`: within
/// `ulps`, the library's bound and the C library's own error together.
template <class T, class F, class H>
void check(const qn::Device& device, const char* name, int ulps, F f, H wanted) {
  std::vector<T> xs = arguments<T>(), ys(xs.rbegin(), xs.rend());
  const std::vector<T> oracle = values<T>(qn::Device("interpreter"), true, f),
                       strict = values<T>(device, true, f), fast = values<T>(device, false, f);
  for (size_t k = 0; k < xs.size(); k++) {
    T host = wanted(xs[k], ys[k]);
    INFO(name << ", " << sizeof(T) * 8 << " bits at x = " << xs[k] << ", y = " << ys[k]
              << ": oracle " << oracle[k] << ", strict " << strict[k] << ", default " << fast[k]
              << ", host " << host);
    CHECK(same_bits(strict[k], oracle[k]));
    CHECK(near(strict[k], host, ulps));
    CHECK(near(fast[k], host, ulps));
  }
}

template <class T>
void check_all(const qn::Device& device) {
#define UNARY(name, ulps)                                        \
  check<T>(                                                      \
      device, #name, ulps, [](auto x, auto) { return name(x); }, \
      [](T x, T) { return std::name(x); });
#define BINARY(name, ulps)                                            \
  check<T>(                                                           \
      device, #name, ulps, [](auto x, auto y) { return name(x, y); }, \
      [](T x, T y) { return std::name(x, y); });
  UNARY(sin, 2)
  UNARY(cos, 2)
  UNARY(tan, 3)
  UNARY(asin, 3)
  UNARY(acos, 3)
  UNARY(atan, 3)
  UNARY(sinh, 4)
  UNARY(cosh, 4)
  UNARY(tanh, 4)
  UNARY(asinh, 4)
  UNARY(acosh, 4)
  UNARY(atanh, 4)
  UNARY(exp, 2)
  UNARY(exp2, 2)
  UNARY(expm1, 3)
  UNARY(log, 2)
  UNARY(log2, 3)
  UNARY(log10, 3)
  UNARY(log1p, 3)
  UNARY(cbrt, 3)
  check<T>(
      device, "rsqrt", 3, [](auto x, auto) { return rsqrt(x); },
      [](T x, T) { return 1 / std::sqrt(x); });
  UNARY(erf, 4)
  UNARY(erfc, 7)
  UNARY(tgamma, 12)  // the C library's own bound is 10 (f64)
  BINARY(pow, 2)
  BINARY(atan2, 2)
  BINARY(hypot, 3)
  BINARY(fmod, 0)
  BINARY(remainder, 0)
#undef UNARY
#undef BINARY
}
}  // namespace

TEST_CASE("math functions keep their bounds and in strict mode their bits, f32") {
  on_every_device([](qn::Device& device) { check_all<float>(device); });
}
TEST_CASE("math functions keep their bounds and in strict mode their bits, f64") {
  on_every_device([](qn::Device& device) { check_all<double>(device); });
}

TEST_CASE("a strict program of many functions gives the same bits on every device") {
  constexpr int n = 257;
  auto run = [](const qn::Device& device) {
    qn::Field<float> x{device, {n}};
    qn::Field<double> total{device, {2}};
    qn::Options options;
    options.strict = true;
    // A damped pendulum driven through every function, whose error would grow from round to round.
    qn::Kernel work = {[&] {
                         for (auto i : x) {
                           Var<float> a = 0.01f * cast<float>(i) - 1.3f;
                           Var<double> b = 1 + cast<double>(i) / 100;
                           for (auto k : range(12)) {
                             a = 0.9f * a + 0.3f * sin(3 * a) - 0.1f * tanh(a * cast<float>(k));
                             a += atan(erf(a)) * exp2(-abs(a)) + 0.05f * cbrt(a) + log1p(a * a);
                             b = hypot(b, 0.5 * cos(b)) + 0.01 * lgamma(b + 1) - 0.2 * atan2(b, a);
                             b = fmod(b, 7.0) + pow(abs(b) + 0.1, 0.3) + 0.1 * asinh(expm1(a / 9));
                           }
                           x[i] = a + cast<float>(tgamma(1 + abs(remainder(b, 3.0))));
                         }
                         Var<double> sum = 0.0, worst = 0.0;
                         for (auto i : x) {
                           sum += x[i];
                           atomic_max(worst, cast<double>(abs(x[i])));
                         }
                         total[0] = sum;
                         total[1] = worst;
                       },
                       options};
    work();
    std::vector<double> all = qn::to_vector(total);
    for (float v : qn::to_vector(x)) all.push_back(v);
    return all;
  };
  const std::vector<double> oracle = run(qn::Device("interpreter"));
  for (double v : oracle) REQUIRE(std::isfinite(v));
  on_every_device([&](qn::Device& device) {
    const std::vector<double> got = run(device);
    for (size_t k = 0; k < oracle.size(); k++) {
      INFO("value " << k);
      CHECK(same_bits(got[k], oracle[k]));
    }
  });
}
