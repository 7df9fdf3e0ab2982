// Conjugate gradients for Poisson's equation: the order of the discretisation, the bound of the
// method, and the same iteration in plain C++.
#include <cmath>

#include "examples/poisson.h"
#include "tests/end_to_end/devices.h"

namespace {

/// u = eˣ sin(πy), so -Δu = (π² - 1) u.
double exact(double y, double x) { return std::exp(x) * std::sin(M_PI * y); }

void set_up(examples::Poisson& p) {
  const int n = p.nodes();
  const double h = 1.0 / (n - 1);
  std::vector<double> u(size_t(n) * size_t(n)), f(u.size());
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      const size_t k = size_t(i) * size_t(n) + size_t(j);
      const bool boundary = i == 0 || j == 0 || i == n - 1 || j == n - 1;
      u[k] = boundary ? exact(i * h, j * h) : 0;
      f[k] = (M_PI * M_PI - 1) * exact(i * h, j * h);
    }
  p.u.copy_from(u);
  p.f.copy_from(f);
}

double largest_error(const examples::Poisson& p) {
  const int n = p.nodes();
  const double h = 1.0 / (n - 1);
  std::vector<double> u = qn::to_vector(p.u);
  double worst = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      worst = std::max(worst, std::abs(u[size_t(i) * size_t(n) + size_t(j)] - exact(i * h, j * h)));
  return worst;
}

/// The iterations plain C++ takes.
int plain_iterations(int n, double tolerance) {
  const double h = 1.0 / (n - 1);
  const size_t width = size_t(n), size = width * width;
  std::vector<double> u(size), r(size), p(size), q(size);
  auto inner = [&](auto&& f) {
    for (size_t i = 1; i + 1 < width; i++)
      for (size_t j = 1; j + 1 < width; j++) f(i * width + j);
  };
  auto apply = [&](const std::vector<double>& v, size_t k) {
    return (4 * v[k] - v[k - width] - v[k + width] - v[k - 1] - v[k + 1]) / (h * h);
  };
  for (size_t k = 0; k < size; k++) {
    const size_t i = k / width, j = k % width;
    if (i == 0 || j == 0 || i == width - 1 || j == width - 1)
      u[k] = exact(double(i) * h, double(j) * h);
  }
  double square = 0;
  inner([&](size_t k) {
    r[k] = (M_PI * M_PI - 1) * exact(double(k / width) * h, double(k % width) * h) - apply(u, k);
    p[k] = r[k];
    square += r[k] * r[k];
  });
  const double first = square;
  int iterations = 0;
  for (; square > tolerance * tolerance * first; iterations++) {
    double slope = 0, next = 0;
    inner([&](size_t k) { slope += p[k] * (q[k] = apply(p, k)); });
    inner([&](size_t k) {
      r[k] -= square / slope * q[k];
      next += r[k] * r[k];
    });
    inner([&](size_t k) { p[k] = r[k] + next / square * p[k]; });
    square = next;
  }
  return iterations;
}

}  // namespace

TEST_CASE("Poisson by conjugate gradients: the error falls with h², iterations as in plain C++") {
  on_every_device([](qn::Device& device) {
    const bool fast = device.name() == std::string("cpu");
    const double tolerance = 1e-9;
    double error[2];
    for (int k = 0; k < 2; k++) {
      const int n = (fast ? 64 : 16) * (k + 1) + 1;
      examples::Poisson poisson({device, {n, n}});
      set_up(poisson);
      auto [iterations, residual] = poisson.solve(tolerance);
      error[k] = largest_error(poisson);
      CHECK(residual <= tolerance);
      CHECK(std::abs(iterations - plain_iterations(n, tolerance)) <= 1);  // sums in another order
      // |e| falls by (√κ - 1) / (√κ + 1) an iteration or faster, in the norm of the operator, and
      // κ = cot²(πh/2); the residual's norm may lag behind by √κ.
      const double root = 1 / std::tan(M_PI / (n - 1) / 2);
      CHECK(iterations <= std::log(2 * root / tolerance) / std::log((root + 1) / (root - 1)) + 1);
    }
    // The leading error is h²/12 (u_xxxx + u_yyyy), so halving h divides by 4.
    CHECK(error[0] / error[1] == Approx(4).epsilon(0.05));
  });
}

TEST_CASE("Poisson: nothing to do, and a limit that stops it") {
  on_every_device([](qn::Device& device) {
    examples::Poisson rest({device, {9, 9}});
    CHECK(rest.solve(1e-9).iterations == 0);
    examples::Poisson poisson({device, {17, 17}});
    set_up(poisson);
    auto [iterations, residual] = poisson.solve(1e-12, 3);
    CHECK(iterations == 3);
    CHECK(residual > 1e-12);
  });
}
