// A determinant by minors and a differential equation, with their gradients.
#include <algorithm>
#include <utility>
#include <vector>

#include "bench/autodiff/reference.h"

namespace bench::reference {

namespace {

/// Of the last `size` rows of a matrix with so many columns, and the columns in `left`.
template <int size>
double minor(const double* at, int columns, const int* left) {
  const double* row = at + (columns - size) * columns;
  if constexpr (size == 1) {
    return row[left[0]];
  } else {
    int others[size - 1];
    for (int j = 1; j < size; j++) others[j - 1] = left[j];
    double sum = 0;
    for (int j = 0; j < size; j++) {
      const double part = row[left[j]] * minor<size - 1>(at, columns, others);
      sum += j % 2 == 0 ? part : -part;
      if (j + 1 < size) others[j] = left[j];
    }
    return sum;
  }
}

/// The same; adds `factor` times its derivatives to `gradient`.
template <int size>
double minor_gradient(const double* at, int columns, const int* left, double factor,
                      double* gradient) {
  const int first = (columns - size) * columns;
  if constexpr (size == 1) {
    gradient[first + left[0]] += factor;
    return at[first + left[0]];
  } else {
    int others[size - 1];
    for (int j = 1; j < size; j++) others[j - 1] = left[j];
    double sum = 0;
    for (int j = 0; j < size; j++) {
      const double sign = j % 2 == 0 ? 1 : -1, entry = at[first + left[j]];
      const double rest =
          sign * minor_gradient<size - 1>(at, columns, others, factor * sign * entry, gradient);
      sum += entry * rest;
      gradient[first + left[j]] += factor * rest;
      if (j + 1 < size) others[j] = left[j];
    }
    return sum;
  }
}

/// By all choices of columns in the first two rows; all threads.
template <int size>
double determinant_of(const double* at) {
  double value = 0;
#pragma omp parallel for reduction(+ : value) schedule(dynamic)
  for (int choice = 0; choice < size * (size - 1); choice++) {
    const int a = choice / (size - 1), second = choice % (size - 1), b = second + (second >= a);
    int left[size], count = 0;
    for (int j = 0; j < size; j++)
      if (j != a && j != b) left[count++] = j;
    const double sign = (a + second) % 2 == 0 ? 1 : -1;
    value += sign * at[a] * at[size + b] * minor<size - 2>(at, size, left);
  }
  return value;
}

template <int size>
double determinant_gradient_of(const double* at, double* gradient) {
  double value = 0;
  std::fill(gradient, gradient + size * size, 0.0);
#pragma omp parallel for reduction(+ : value, gradient[ : size * size]) schedule(dynamic)
  for (int choice = 0; choice < size * (size - 1); choice++) {
    const int a = choice / (size - 1), second = choice % (size - 1), b = second + (second >= a);
    int left[size], count = 0;
    for (int j = 0; j < size; j++)
      if (j != a && j != b) left[count++] = j;
    const double sign = (a + second) % 2 == 0 ? 1 : -1, x = at[a], y = at[size + b];
    const double rest = sign * minor_gradient<size - 2>(at, size, left, sign * x * y, gradient);
    value += x * y * rest;
    gradient[a] += y * rest;
    gradient[size + b] += x * rest;
  }
  return value;
}

}  // namespace

double determinant(const Determinant& in, const double* at) {
  switch (in.rows) {
    case 6: return determinant_of<6>(at);
    case 7: return determinant_of<7>(at);
    case 8: return determinant_of<8>(at);
    default: return determinant_of<9>(at);
  }
}

double determinant_gradient(const Determinant& in, const double* at, double* gradient) {
  switch (in.rows) {
    case 6: return determinant_gradient_of<6>(at, gradient);
    case 7: return determinant_gradient_of<7>(at, gradient);
    case 8: return determinant_gradient_of<8>(at, gradient);
    default: return determinant_gradient_of<9>(at, gradient);
  }
}

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
