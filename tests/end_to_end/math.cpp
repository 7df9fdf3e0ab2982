// The functions of the library on every device: within their bounds of the host's, and in strict
// mode the same bits as on the interpreter.
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
struct Results {
  std::vector<T> sin, cos, exp, log, atan2, pow;
};

template <class T>
Results<T> run(const qn::Device& device, bool strict) {
  std::vector<T> xs = arguments<T>(), ys(xs.rbegin(), xs.rend());
  const int n = int(xs.size());
  qn::Field<T> x{device, {n}}, y{device, {n}}, s{device, {n}}, c{device, {n}}, e{device, {n}},
      l{device, {n}}, a{device, {n}}, p{device, {n}};
  x.copy_from(xs);
  y.copy_from(ys);
  qn::Options options;
  options.strict = strict;
  qn::Kernel work = {[&] {
                       for (auto i : x) {
                         s[i] = sin(x[i]);
                         c[i] = cos(x[i]);
                         e[i] = exp(x[i]);
                         l[i] = log(x[i]);
                         a[i] = atan2(y[i], x[i]);
                         p[i] = pow(x[i], y[i]);
                       }
                     },
                     options};
  work();
  return {qn::to_vector(s), qn::to_vector(c), qn::to_vector(e),
          qn::to_vector(l), qn::to_vector(a), qn::to_vector(p)};
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

template <class T>
void check(const qn::Device& device) {
  std::vector<T> xs = arguments<T>(), ys(xs.rbegin(), xs.rend());
  const Results<T> oracle = run<T>(qn::Device("interpreter"), true);
  const Results<T> strict = run<T>(device, true), fast = run<T>(device, false);
  for (size_t k = 0; k < xs.size(); k++) {
    INFO(sizeof(T) * 8 << " bits at x = " << xs[k] << ", y = " << ys[k]);
    auto row = [&](const char* name, std::vector<T> Results<T>::* column, T wanted) {
      INFO(name << ": oracle " << (oracle.*column)[k] << ", strict " << (strict.*column)[k]
                << ", default " << (fast.*column)[k] << ", host " << wanted);
      CHECK(same_bits((strict.*column)[k], (oracle.*column)[k]));
      CHECK(near((strict.*column)[k], wanted, 2));
      CHECK(near((fast.*column)[k], wanted, 2));
    };
    row("sin", &Results<T>::sin, std::sin(xs[k]));
    row("cos", &Results<T>::cos, std::cos(xs[k]));
    row("exp", &Results<T>::exp, std::exp(xs[k]));
    row("log", &Results<T>::log, std::log(xs[k]));
    row("atan2", &Results<T>::atan2, std::atan2(ys[k], xs[k]));
    row("pow", &Results<T>::pow, std::pow(xs[k], ys[k]));
  }
}
}  // namespace

TEST_CASE("math functions keep their bounds and in strict mode their bits, f32") {
  on_every_device([](qn::Device& device) { check<float>(device); });
}
TEST_CASE("math functions keep their bounds and in strict mode their bits, f64") {
  on_every_device([](qn::Device& device) { check<double>(device); });
}
