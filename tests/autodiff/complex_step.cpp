// Derivatives in both directions against complex steps: f'(x) = Im f(x + ih) / h, which subtracts
// nothing, so that h may be 1e-200 and all digits are there. f is written once more for that, in plain
// C++. (Squire and Trapp, Using complex variables to estimate derivatives of real functions, SIAM
// Review 40(1), 1998.)
#include <quern/autodiff.h>
#include <quern/else.h>

#include <array>
#include <cmath>
#include <functional>

#include "tests/autodiff/complex_functions.h"
#include "tests/autodiff/numbers.h"
#include "tests/end_to_end/devices.h"

using namespace qn::lang;
using complex::Complex;

namespace {

constexpr double h = 1e-200;

/// What f(x) changes by with its k-th input.
template <class F>
double partial(F&& f, const std::vector<double>& x, size_t k) {
  std::vector<Complex> z(x.begin(), x.end());
  z[k] += Complex(0, h);
  return f(z).imag() / h;
}

/// A few roundings of the derivative itself and of its factors.
constexpr double roundings = 1e-14;

void expect_equal(const std::vector<double>& found, const std::vector<double>& expected,
                  double tolerance, double of = 0) {
  REQUIRE(found.size() == expected.size());
  for (size_t k = 0; k < found.size(); k++) {
    INFO("number " << k << ": " << found[k] << " in place of " << expected[k]);
    CHECK(std::fabs(found[k] - expected[k]) <= tolerance * std::max(std::fabs(expected[k]), of));
  }
}

double largest(const std::vector<double>& v) {
  double most = 0;
  for (double e : v) most = std::max(most, std::fabs(e));
  return most;
}

struct Unary {
  const char* name;
  std::function<Complex(Complex)> reference;
  std::function<Val<double>(Val<double>)> f;
  std::vector<double> at;
  double tolerance = roundings;
};
struct Binary {
  const char* name;
  std::function<Complex(Complex, Complex)> reference;
  std::function<Val<double>(Val<double>, Val<double>)> f;
  std::vector<std::array<double, 2>> at;
};

#define QUERN_IN_STD(name) \
  #name, [](Complex z) { return std::name(z); }, [](F64 a) { return name(a); }
#define QUERN_HERE(name) \
  #name, [](Complex z) { return complex::name(z); }, [](F64 a) { return name(a); }
#define QUERN_OF_TWO(name)                                         \
  #name, [](Complex a, Complex b) { return complex::name(a, b); }, \
      [](F64 a, F64 b) { return name(a, b); }

std::vector<Unary> unary() {
  return {
      {QUERN_IN_STD(sin), {0.1, 1.3, -2, 20, 1000}},
      {QUERN_IN_STD(cos), {0.1, 1.3, -2, 20, 1000}},
      {QUERN_IN_STD(tan), {0.1, 1.3, -2, 20}},
      {QUERN_IN_STD(asin), {0.1, 0.5, -0.9}},
      {QUERN_IN_STD(acos), {0.1, 0.5, -0.9}},
      {QUERN_IN_STD(atan), {0.1, 0.5, -0.9, 30}},
      {QUERN_IN_STD(sinh), {0.1, 0.5, -5, 30}},
      {QUERN_IN_STD(cosh), {0.1, 0.5, -5, 30}},
      {QUERN_IN_STD(tanh), {0.1, 0.5, -2}},
      {QUERN_IN_STD(asinh), {0.1, 0.5, -5, 30}},
      {QUERN_IN_STD(acosh), {1.1, 1.5, 5, 30}},
      {QUERN_IN_STD(atanh), {0.1, 0.5, -0.9}},
      {QUERN_IN_STD(exp), {0.1, 0.5, -5, 30}},
      {QUERN_HERE(exp2), {0.1, 0.5, -5, 10}},
      {QUERN_HERE(expm1), {1e-9, 0.5, -5, 10}},
      {QUERN_IN_STD(log), {0.1, 0.5, 5, 1e9}},
      {QUERN_HERE(log2), {0.1, 0.5, 5, 1e9}},
      {QUERN_IN_STD(log10), {0.1, 0.5, 5, 1e9}},
      {QUERN_HERE(log1p), {1e-9, -0.5, -0.9, 30}},
      {QUERN_IN_STD(sqrt), {0.1, 0.5, 9, 1e9}},
      {QUERN_HERE(rsqrt), {0.1, 0.5, 9, 1e9}},
      {QUERN_HERE(cbrt), {0.1, -0.5, -9, 30}},
      {QUERN_HERE(erf), {0.1, -0.5, 0.7, 1}},
      // 1 - erf, and a fraction that is good for large numbers.
      {"erfc",
       [](Complex z) { return 1.0 - complex::erf(z); },
       [](F64 a) { return erfc(a); },
       {0.1, -0.7, 1}},
      {"erfc", complex::erfc_of_large, [](F64 a) { return erfc(a); }, {2, 2.5, 3, 5}},
      {QUERN_HERE(lgamma), {0.1, 0.5, 3, 5.5, -0.7, -2.3, 30}},
      // The reference is e to the power of 40 to 70, whose rounding it magnifies as much.
      {QUERN_HERE(tgamma), {0.1, 0.5, 3, 5.5, -0.5, -2.3, 30}, 5e-14},
  };
}

std::vector<Binary> binary() {
  return {
      {QUERN_OF_TWO(hypot), {{3, 4}, {-0.1, 2}, {1e3, -7}}},
      {QUERN_OF_TWO(atan2), {{1, 2}, {2, -1}, {-0.3, -0.1}, {-5, 0.2}}},
      {QUERN_OF_TWO(fmod), {{7.3, 2.1}, {-7.3, 2.1}, {0.5, 3}}},
      {QUERN_OF_TWO(remainder), {{7.3, 2.1}, {-7.3, 2.1}, {2, 3}}},
      {"pow",
       [](Complex a, Complex b) { return std::pow(a, b); },
       [](F64 a, F64 b) { return pow(a, b); },
       {{2, 3}, {0.3, 1.7}, {5, -2.5}, {1.1, 10}}},
      {"division",
       [](Complex a, Complex b) { return a / b; },
       [](F64 a, F64 b) { return a / b; },
       {{2, 3}, {-0.3, 1.7}}},
      {"fma",
       [](Complex a, Complex b) { return a * b + b; },
       [](F64 a, F64 b) { return fma(a, b, b); },
       {{2, 3}, {-0.3, 1.7}}},
      {"mirrored",
       [](Complex a, Complex b) { return a.real() < 0 ? -a * b : a * b; },
       [](F64 a, F64 b) { return copysign(abs(a), 1.0) * b; },
       {{2, 3}, {-0.3, 1.7}}},
      {"chosen",
       [](Complex a, Complex b) { return a.real() < b.real() ? a * b * b : b; },
       [](F64 a, F64 b) { return min(a, b) * select(a < b, b * b, 1.0); },
       {{2, 3}, {4, 1.7}}},
  };
}

}  // namespace

TEST_CASE("derivatives of functions of one number equal complex steps") {
  on_every_device([](const qn::Device& device) {
    for (const Unary& row : unary()) {
      INFO(row.name);
      auto x = numbers(device, row.at), y = numbers(device, row.at);
      qn::Kernel k = [&] {
        for (auto i : x) y[i] = row.f(x[i]);
      };
      std::vector<double> expected;
      for (double at : row.at) expected.push_back(row.reference(Complex(at, h)).imag() / h);
      x.dual().fill(1.0);
      qn::jvp(k)();
      expect_equal(qn::to_vector(y.dual()), expected, row.tolerance);
      y.grad().fill(1.0);
      qn::vjp(k)()();
      expect_equal(qn::to_vector(x.grad()), expected, row.tolerance);
    }
  });
}

TEST_CASE("derivatives of functions of two numbers equal complex steps") {
  on_every_device([](const qn::Device& device) {
    for (const Binary& row : binary()) {
      INFO(row.name);
      std::vector<double> first, second, by_first, by_second;
      for (const auto& [a, b] : row.at) {
        first.push_back(a);
        second.push_back(b);
        by_first.push_back(row.reference(Complex(a, h), b).imag() / h);
        by_second.push_back(row.reference(a, Complex(b, h)).imag() / h);
      }
      auto a = numbers(device, first), b = numbers(device, second), y = numbers(device, first);
      qn::Kernel k = [&] {
        for (auto i : a) y[i] = row.f(a[i], b[i]);
      };
      for (bool is_first : {true, false}) {
        a.dual().fill(is_first ? 1.0 : 0.0);
        b.dual().fill(is_first ? 0.0 : 1.0);
        qn::jvp(k)();
        expect_equal(qn::to_vector(y.dual()), is_first ? by_first : by_second, roundings);
      }
      y.grad().fill(1.0);
      qn::vjp(k)()();
      expect_equal(qn::to_vector(a.grad()), by_first, roundings);
      expect_equal(qn::to_vector(b.grad()), by_second, roundings);
    }
  });
}

TEST_CASE("derivatives of polynomials in loops equal complex steps") {
  on_every_device([](const qn::Device& device) {
    // Σ c_k T_k(x), by Clenshaw's recurrence, summed over several x, which stand behind the c.
    constexpr int degree = 24, count = 5;
    std::vector<double> at;
    for (int k = 0; k <= degree; k++) at.push_back(1.0 / (1 + k) * (k % 3 == 0 ? -1 : 1));
    for (int k = 0; k < count; k++) at.push_back(0.37 * k - 0.8);
    const auto sum = [&](const std::vector<Complex>& z) {
      Complex all = 0;
      for (size_t n = degree + 1; n < z.size(); n++) {
        Complex b1 = 0, b2 = 0;
        for (size_t k = degree; k > 0; k--) {
          const Complex b = z[k] + 2.0 * z[n] * b1 - b2;
          b2 = b1;
          b1 = b;
        }
        all += z[0] + z[n] * b1 - b2;
      }
      return all;
    };
    std::vector<double> expected;
    for (size_t k = 0; k < at.size(); k++) expected.push_back(partial(sum, at, k));

    auto c = numbers(device, {at.begin(), at.end() - count});
    auto x = numbers(device, {at.end() - count, at.end()});
    qn::Kernel clenshaw = [&](I32 n) -> F64 {
      Var<double> all = 0.0;
      for (auto i : x) {
        Var<double> b1 = 0.0, b2 = 0.0;
        for (auto k : range(n)) {
          F64 b = c[n - k] + 2.0 * x[i] * b1 - b2;
          b2 = b1;
          b1 = b;
        }
        all += c[0] + x[i] * b1 - b2;
      }
      return all;
    };
    // What the recurrence adds is as large as the largest derivative; it does so 24 times.
    qn::grad(clenshaw)(degree);
    std::vector<double> found = qn::to_vector(c.grad());
    for (double by_x : qn::to_vector(x.grad())) found.push_back(by_x);
    expect_equal(found, expected, roundings, largest(expected));
    found.clear();
    for (size_t k = 0; k < at.size(); k++) {
      std::vector<double> along(at.size());
      along[k] = 1;
      c.dual().copy_from(std::vector<double>(along.begin(), along.end() - count));
      x.dual().copy_from(std::vector<double>(along.end() - count, along.end()));
      found.push_back(qn::jvp(clenshaw)(degree).tangent());
    }
    expect_equal(found, expected, roundings, largest(expected));
  });
}

TEST_CASE("derivatives of a root that Newton's rounds find equal complex steps") {
  on_every_device([](const qn::Device& device) {
    // E - e sin E = M, of Kepler's orbits.
    const std::vector<double> mean = {0.1, 1, 2.5, 4}, eccentric = {0.1, 0.4, 0.6, 0.3};
    constexpr int rounds = 8;
    const auto solve = [](const std::vector<Complex>& z) {
      Complex root = z[0];
      for (int k = 0; k < rounds; k++)
        root -= (root - z[1] * std::sin(root) - z[0]) / (1.0 - z[1] * std::cos(root));
      return root;
    };
    auto m = numbers(device, mean), e = numbers(device, eccentric), root = numbers(device, mean);
    qn::Kernel kepler = [&] {
      for (auto i : m) {
        Var<double> r = m[i];
        for ([[maybe_unused]] auto k : range(rounds))
          r -= (r - e[i] * sin(r) - m[i]) / (1.0 - e[i] * cos(r));
        root[i] = r;
      }
    };
    std::vector<double> by_m, by_e;
    for (size_t k = 0; k < mean.size(); k++) {
      by_m.push_back(partial(solve, {mean[k], eccentric[k]}, 0));
      by_e.push_back(partial(solve, {mean[k], eccentric[k]}, 1));
    }
    root.grad().fill(1.0);
    qn::vjp(kepler)()();
    expect_equal(qn::to_vector(m.grad()), by_m, roundings);
    expect_equal(qn::to_vector(e.grad()), by_e, roundings);
    m.dual().fill(0.0);
    e.dual().fill(1.0);
    qn::jvp(kepler)();
    expect_equal(qn::to_vector(root.dual()), by_e, roundings);
  });
}

TEST_CASE("derivatives of steps of bodies that attract each other equal complex steps") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 5, steps = 12;
    constexpr double dt = 0.05, soft = 0.1;
    std::vector<double> at;  // x, y, then velocities
    for (int k = 0; k < n; k++) at.push_back(std::cos(1.3 * k) * (1 + 0.2 * k));
    for (int k = 0; k < n; k++) at.push_back(std::sin(1.3 * k) * (1 + 0.1 * k));
    for (int k = 0; k < n; k++) at.push_back(-0.4 * std::sin(1.1 * k));
    for (int k = 0; k < n; k++) at.push_back(0.4 * std::cos(0.9 * k));
    const auto far = [&](const std::vector<Complex>& start) {
      std::vector<Complex> z = start;
      for (int t = 0; t < steps; t++) {
        for (size_t a = 0; a < n; a++)
          for (size_t b = 0; b < n; b++) {
            const Complex dx = z[b] - z[a], dy = z[n + b] - z[n + a];
            const Complex square = dx * dx + dy * dy + soft;
            const Complex pull = dt / (square * std::sqrt(square));
            z[2 * n + a] += pull * dx;
            z[3 * n + a] += pull * dy;
          }
        for (size_t k = 0; k < 2 * n; k++) z[k] += dt * z[2 * n + k];
      }
      Complex sum = 0;
      for (size_t a = 0; a < n; a++) sum += std::exp(-z[a]) * z[n + a];
      return sum;
    };
    std::vector<double> expected;
    for (size_t k = 0; k < at.size(); k++) expected.push_back(partial(far, at, k));

    const std::vector<double> places(at.begin(), at.begin() + 2 * n),
        speeds(at.begin() + 2 * n, at.end());
    auto z = numbers(device, places), v = numbers(device, speeds);
    qn::Field<double, 0> sum{device};
    qn::Kernel pull = [&] {
      for (auto a : range(n)) {
        Var<double> fx = 0.0, fy = 0.0;
        for (auto b : range(n)) {
          F64 dx = z[b] - z[a], dy = z[n + b] - z[n + a];
          F64 square = dx * dx + dy * dy + soft;
          F64 by = dt / (square * sqrt(square));
          fx += by * dx;
          fy += by * dy;
        }
        v[a] += fx;
        v[n + a] += fy;
      }
    };
    qn::Kernel move = [&] {
      for (auto k : z) z[k] += dt * v[k];
    };
    qn::Kernel measure = [&] {
      for (auto a : range(n)) atomic_add(sum(), exp(-z[a]) * z[n + a]);
    };
    sum.grad().fill(1.0);
    {
      qn::Tape tape;
      for (int t = 0; t < steps; t++) {
        pull();
        move();
      }
      measure();
      tape.backward();
    }
    // A component is a sum over all attractions; what cancels in it is as large as others.
    std::vector<double> found = qn::to_vector(z.grad());
    for (double by_speed : qn::to_vector(v.grad())) found.push_back(by_speed);
    expect_equal(found, expected, roundings, largest(expected));

    for (size_t k : {1, 7, 18}) {
      std::vector<double> along(at.size());
      along[k] = 1;
      z.copy_from(places);
      v.copy_from(speeds);
      z.dual().copy_from(std::vector<double>(along.begin(), along.begin() + 2 * n));
      v.dual().copy_from(std::vector<double>(along.begin() + 2 * n, along.end()));
      sum.fill(0.0);
      sum.dual().fill(0.0);
      for (int t = 0; t < steps; t++) {
        qn::jvp(pull)();
        qn::jvp(move)();
      }
      qn::jvp(measure)();
      expect_equal({sum.dual().at({})}, {expected[k]}, roundings, largest(expected));
    }
  });
}

TEST_CASE("derivatives of steps of a nonlinear diffusion equal complex steps") {
  on_every_device([](const qn::Device& device) {
    constexpr int n = 24, steps = 10;
    std::vector<double> at;
    for (int k = 0; k < n; k++) at.push_back(1 + 0.5 * std::sin(0.7 * k));
    const auto spread = [](std::vector<Complex> u) {
      for (int t = 0; t < steps; t++) {
        std::vector<Complex> next = u;
        for (size_t k = 1; k + 1 < n; k++) {
          const Complex right = 0.5 * (u[k] + u[k + 1]), left = 0.5 * (u[k] + u[k - 1]);
          next[k] += 0.1 * (right * right * (u[k + 1] - u[k]) - left * left * (u[k] - u[k - 1]));
        }
        u = next;
      }
      Complex sum = 0;
      for (size_t k = 0; k < n; k++) sum += double(k) * u[k] * u[k] * u[k];
      return sum;
    };
    std::vector<double> expected;
    for (size_t k = 0; k < n; k++) expected.push_back(partial(spread, at, k));

    auto u = numbers(device, at), v = numbers(device, at);
    qn::Field<double, 0> sum{device};
    qn::Kernel step = [&](qn::Field<double> from, qn::Field<double> to) {
      for (auto k : from) {
        If(k > 0 && k < n - 1) {
          F64 right = 0.5 * (from[k] + from[k + 1]), left = 0.5 * (from[k] + from[k - 1]);
          to[k] = from[k] + 0.1 * (right * right * (from[k + 1] - from[k]) -
                                   left * left * (from[k] - from[k - 1]));
        }
        Else { to[k] = from[k]; }
      }
    };
    qn::Kernel measure = [&] {
      for (auto k : u) atomic_add(sum(), cast<double>(k) * u[k] * u[k] * u[k]);
    };
    sum.grad().fill(1.0);
    {
      qn::Tape tape;
      for (int t = 0; t < steps; t += 2) {
        step(u, v);
        step(v, u);
      }
      measure();
      tape.backward();
    }
    expect_equal(qn::to_vector(u.grad()), expected, roundings, largest(expected));
    for (size_t k : {0, 5, 23}) {
      std::vector<double> along(n);
      along[k] = 1;
      u.copy_from(at);
      u.dual().copy_from(along);
      sum.fill(0.0);
      sum.dual().fill(0.0);
      for (int t = 0; t < steps; t += 2) {
        qn::jvp(step)(u, v);
        qn::jvp(step)(v, u);
      }
      qn::jvp(measure)();
      expect_equal({sum.dual().at({})}, {expected[k]}, roundings, largest(expected));
    }
  });
}
