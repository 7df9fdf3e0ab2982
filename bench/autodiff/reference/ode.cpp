// A differential equation, with its gradient.
#include <algorithm>
#include <utility>
#include <vector>

#include "bench/autodiff/reference.h"

namespace bench::reference {

namespace {

/// Vectors of one step. Each has an element before its first one, which is what that of the first
/// unknown depends on: y has 1 there, slopes 0.
struct Stages {
  std::vector<double> k1, k2, k3, k4;
  explicit Stages(int n) : k1(size_t(n) + 1), k2(k1), k3(k1), k4(k1) {}

  void compute(const double* at, const double* y, int n, double h) {
    auto slopes = [&](std::vector<double>& k, const std::vector<double>& last, double by) {
#pragma omp simd
      for (int i = 0; i < n; i++) k[size_t(i) + 1] = at[i] * (y[i] + by * last[size_t(i)]);
    };
#pragma omp simd
    for (int i = 0; i < n; i++) k1[size_t(i) + 1] = at[i] * y[i];
    slopes(k2, k1, h / 2);
    slopes(k3, k2, h / 2);
    slopes(k4, k3, h);
  }
};

/// y behind a step goes to `next`.
void step(const Stages& s, const double* y, double* next, int n, double h) {
  next[0] = 1;
#pragma omp simd
  for (int i = 1; i <= n; i++) {
    const size_t k = size_t(i);
    next[i] = y[i] + h / 6 * (s.k1[k] + 2 * s.k2[k] + 2 * s.k3[k] + s.k4[k]);
  }
}

}  // namespace

// In one thread: a step of a thousand unknowns takes less than threads take to meet.
double ode(const Ode& in, const double* at) {
  const int n = in.unknowns;
  const double h = 2.0 / in.steps;
  Stages stages(n);
  std::vector<double> y(size_t(n) + 1);
  y[0] = 1;
  for (int s = 0; s < in.steps; s++) {
    stages.compute(at, y.data(), n, h);
    step(stages, y.data(), y.data(), n, h);
  }
  double sum = 0;
  for (int i = 1; i <= n; i++) sum += y[size_t(i)];
  return sum;
}

double ode_gradient(const Ode& in, const double* at, double* gradient) {
  const int n = in.unknowns;
  const size_t row = size_t(n) + 1;
  const double h = 2.0 / in.steps;
  Stages stages(n);
  std::vector<double> y(row * size_t(in.steps + 1));
  y[0] = 1;
  for (int s = 0; s < in.steps; s++) {
    stages.compute(at, &y[row * size_t(s)], n, h);
    step(stages, &y[row * size_t(s)], &y[row * size_t(s + 1)], n, h);
  }
  double sum = 0;
  for (size_t i = 1; i < row; i++) sum += y[row * size_t(in.steps) + i];
  // Adjoints of y behind the step, of a slope, and of what that slope was taken of.
  std::vector<double> of_y(row, 1.0), of_k(row), of_all(row), of_from(row);
  std::fill(gradient, gradient + n, 0.0);
  for (int s = in.steps - 1; s >= 0; s--) {
    const double* from = &y[row * size_t(s)];
    stages.compute(at, from, n, h);
    std::copy(of_y.begin(), of_y.end(), of_all.begin());
    // k = at · (y + by · last): `share` of the adjoint of y is k's, and `by_next` of what the next
    // slope was taken of.
    auto back = [&](double share, double by_next, double by, const std::vector<double>* last) {
#pragma omp simd
      for (int i = 0; i < n; i++) {
        const size_t k = size_t(i);
        of_k[k + 1] = share * of_y[k + 1] + by_next * of_from[k + 1];
      }
#pragma omp simd
      for (int i = 0; i < n; i++) {
        const size_t k = size_t(i);
        gradient[i] += of_k[k + 1] * (from[i] + (last ? by * (*last)[k] : 0.0));
        of_from[k] = at[i] * of_k[k + 1];
        of_all[k] += of_from[k];
      }
      of_from[size_t(n)] = 0;
    };
    back(h / 6, 0, h, &stages.k3);
    back(h / 3, h, h / 2, &stages.k2);
    back(h / 3, h / 2, h / 2, &stages.k1);
    back(h / 6, h / 2, 0, nullptr);
    std::swap(of_y, of_all);
  }
  return sum;
}

}  // namespace bench::reference
