// Complex numbers against std::complex in higher precision, over random and special arguments; on
// branch cuts the sign of a zero decides.
#include <quern/complex.h>
#include <quern/decompose.h>  // its polar is another

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <type_traits>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

namespace {
template <class T>
using Wide = std::complex<std::conditional_t<sizeof(T) == 4, double, long double>>;
template <class T>
Wide<T> widened(const Complex<HostW, T>& z) {
  return {z.re, z.im};
}

/// Magnitudes from 1e-4 to 30, the circle of radius 1, cuts from both sides, zeros of both signs.
template <class T>
std::vector<Complex<HostW, T>> arguments() {
  std::vector<Complex<HostW, T>> all;
  const double reals[] = {0.0, 1e-3, 0.5, 1.0, 1.5, 2.0, 20.0};
  for (double a : reals)
    for (double b : reals)
      for (int signs = 0; signs < 4; signs++)
        all.push_back({T(signs & 1 ? -a : a), T(signs & 2 ? -b : b)});
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> turn(-3.14159, 3.14159), exponent(-4, 1.5);
  for (int k = 0; k < 400; k++) {
    double angle = turn(random), r = k % 4 == 0 ? 1 : std::pow(10.0, exponent(random));
    all.push_back({T(r * std::cos(angle)), T(r * std::sin(angle))});
  }
  return all;
}

template <class T>
struct Case {
  const qn::Device& device;
  const std::vector<Complex<HostW, T>> arguments = ::arguments<T>();

  /// Both the kernel's result and the host's, for each argument, to `bound` of its absolute value.
  template <class F, class G>
  void same(const char* name, F ours, G reference) const {
    using Z = Complex<HostW, T>;
    const double bound = sizeof(T) == 4 ? 2e-6 : 4e-15;
    const int n = int(arguments.size());
    qn::Field<Z> z{device, {n}}, out{device, {n}};
    z.copy_from(arguments);
    qn::Kernel k = [&] {
      for (auto i : z) out[i] = ours(z[i]);
    };
    k();
    const std::vector<Z> results = qn::to_vector(out);
    for (size_t i = 0; i < arguments.size(); i++) {
      const Wide<T> want = reference(widened(arguments[i]));
      if (!(std::abs(want) < 1e30)) continue;  // a pole
      for (const Z& got : {results[i], Z(ours(arguments[i]))}) {
        const double error = double(std::abs(widened(got) - want));
        // Of zeros the sign, too.
        auto alike = [](T g, auto w) {
          return g != 0 || w != 0 || std::signbit(g) == std::signbit(w);
        };
        const bool signs = alike(got.re, want.real()) && alike(got.im, want.imag());
        if (error <= bound * double(std::abs(want)) && signs) continue;
        INFO(sizeof(T) * 8 << " bits, " << name << "(" << arguments[i].re << ", " << arguments[i].im
                           << ") = (" << got.re << ", " << got.im << "), not ("
                           << double(want.real()) << ", " << double(want.imag()) << ")");
        CHECK(error <= bound * double(std::abs(want)));
        CHECK(signs);
      }
    }
  }
};

template <class T>
void check_functions(const qn::Device& device) {
  Case<T> c{device};
#define SAME(f) \
  c.same(#f, [](const auto& z) { return f(z); }, [](const auto& z) { return std::f(z); })
  SAME(exp);
  SAME(log);
  SAME(sqrt);
  SAME(sin);
  SAME(cos);
  SAME(tan);
  SAME(sinh);
  SAME(cosh);
  SAME(tanh);
  SAME(asin);
  SAME(acos);
  SAME(atan);
  SAME(asinh);
  SAME(acosh);
  SAME(atanh);
  SAME(conj);
#undef SAME
  using W = Wide<T>;
  using Real = typename W::value_type;
  const Complex<HostW, T> b{T(0.75), T(-1.25)};
  const W wide = widened(b);
  c.same(
      "abs, arg", [](const auto& z) { return complex(abs(z), arg(z)); },
      [](const W& z) { return W(std::abs(z), std::arg(z)); });
  c.same(
      "norm", [](const auto& z) { return complex(norm(z), norm(z)); },
      [](const W& z) { return W(std::norm(z), std::norm(z)); });
  c.same("square", [](const auto& z) { return z * z; }, [](const W& z) { return z * z; });
  c.same("times", [&](const auto& z) { return b * z; }, [&](const W& z) { return wide * z; });
  c.same("over", [&](const auto& z) { return z / b; }, [&](const W& z) { return z / wide; });
  c.same(
      "under", [&](const auto& z) { return b / (z + 40); },
      [&](const W& z) { return wide / (z + Real(40)); });
  c.same(
      "linear", [](const auto& z) { return (2 * z + z / 4 - 1) + (3 - z); },
      [](const W& z) { return (Real(2) * z + z / Real(4) - Real(1)) + (Real(3) - z); });
}

template <class T>
void check_powers(const qn::Device& device) {
  using Z = Complex<HostW, T>;
  const double bound = sizeof(T) == 4 ? 1e-5 : 2e-14;
  const std::vector<Z> all = arguments<T>();
  const int n = int(all.size());
  const Z exponent{T(1.5), T(-0.5)};
  qn::Field<Z> z{device, {n}}, out{device, {n}}, real{device, {n}}, turned{device, {n}};
  z.copy_from(all);
  qn::Kernel k = [&] {
    for (auto i : z) {
      out[i] = pow(z[i], exponent);
      real[i] = pow(z[i], 3);
      turned[i] = polar(abs(z[i]), arg(z[i]));
    }
  };
  k();
  for (int i = 0; i < n; i++) {
    const Wide<T> w = widened(all[size_t(i)]), zero = 0;
    INFO(sizeof(T) * 8 << " bits, (" << double(w.real()) << ", " << double(w.imag()) << ")");
    const Wide<T> power = w == zero ? zero : std::pow(w, widened(exponent)), cube = w * w * w;
    const Z host = pow(all[size_t(i)], exponent);
    CHECK(double(std::abs(widened(out.at(i)) - power)) <= bound * double(std::abs(power)));
    CHECK(double(std::abs(widened(host) - power)) <= bound * double(std::abs(power)));
    CHECK(double(std::abs(widened(real.at(i)) - cube)) <= bound * double(std::abs(cube)));
    CHECK(double(std::abs(widened(turned.at(i)) - w)) <= bound * double(std::abs(w)));
  }
}

template <class W = HostW>
struct Wave {
  In<W, complex64> amplitude;
  In<W, complex128> phase;
};
}  // namespace

TEST_CASE("functions of complex numbers agree with std::complex, on branch cuts too") {
  on_every_device([](qn::Device& device) {
    check_functions<float>(device);
    check_functions<double>(device);
    check_powers<float>(device);
    check_powers<double>(device);
  });
}

TEST_CASE("complex numbers compute on the host, without overflow between") {
  constexpr complex64 i{0, 1}, one{1, 0};
  static_assert(i * i == -one && i + one == complex64{1, 1} && i != one && one / i == -i);
  static_assert(conj(i) == -i && norm(complex64{3, 4}) == 25 && 2 * i - 1 == complex64{-1, 2});
  static_assert(std::is_aggregate_v<complex64> && sizeof(complex128) == 16);
  CHECK(abs(complex64{3e38f, 0}) == 3e38f);
  CHECK(complex64{1e38f, 1e38f} / complex64{1e38f, 1e38f} == one);
  CHECK(sqrt(complex64{-4, 0}) == complex64{0, 2});
  CHECK(sqrt(complex64{-4, -0.0f}) == complex64{0, -2});
  // The largest and the smallest: (1 + i) √(a / 2)-like roots of numbers near the ends of the
  // range.
  const complex64 large = sqrt(complex64{3e38f, 3e38f}), small = sqrt(complex64{1e-44f, 0});
  CHECK(std::abs(large.re / 1.9030e19f - 1) < 1e-3f);
  CHECK(std::abs(small.re * small.re / 1e-44 - 1) < 0.05);
  CHECK(tanh(complex64{1000, 1}) == one);
  CHECK(abs(atanh(complex64{1e30f, 1e30f}) - complex64{0, 1.57079633f}) < 1e-6f);
  CHECK(pow(complex64{0, 0}, complex64{2, 1}) == complex64{0, 0});
  CHECK(pow(complex64{0, 0}, 0) == one);
  CHECK(complex(1.0f, 2) == complex64{1, 2});
}

TEST_CASE("complex numbers are elements, members, variables, parameters and results") {
  on_every_device([](qn::Device& device) {
    qn::Field<Wave<>> waves{device, {8}};
    qn::Func rotated = [](Val<complex128> z, F64 angle) { return z * polar(1.0, angle); };
    qn::Kernel k = [&](Complex64 first) {
      for (auto n : waves) {
        Var<complex64> a = first;
        for (auto step : range(n)) a = a * complex64{0, 1};
        a.re += 0;
        waves[n].amplitude = a;
        waves[n].phase = rotated(complex128{2, 0}, 0.5 * n);
        check(a == first || n > 0, "turned early");
      }
      Var<complex64> sum = first + 1;
      sum = sum - 1;
      return sum;
    };
    const complex64 start{3, 4};
    CHECK(complex64(k(start)) == start);
    const complex64 want[] = {{3, 4}, {-4, 3}, {-3, -4}, {4, -3}};
    for (int n = 0; n < 8; n++) {
      CHECK(waves.at(n).amplitude == want[n % 4]);
      const std::complex<double> phase = std::polar(2.0, 0.5 * n);
      CHECK(std::abs(std::complex<double>(waves.at(n).phase.re, waves.at(n).phase.im) - phase) <
            1e-14);
    }
  });
}
