// The mixture of Gaussian distributions, with its gradient.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/autodiff/reference.h"

namespace bench::reference {

namespace {

double log_sum_exp(int count, const double* x) {
  double most = x[0], sum = 0;
  for (int i = 1; i < count; i++) most = std::max(most, x[i]);
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < count; i++) sum += std::exp(x[i] - most);
  return most + std::log(sum);
}

/// What does not depend on points.
struct Prepared {
  std::vector<double> diagonal, start;
  double prior = 0;

  Prepared(const Gmm& in, const double* at)
      : diagonal(size_t(in.parts * in.dimensions)), start(size_t(in.parts)) {
    const int d = in.dimensions;
    const double *q = at + in.logarithms(), *below = at + in.triangles();
    for (int c = 0; c < in.parts; c++) {
      double sum = 0, squares = 0;
      for (int j = 0; j < d; j++) {
        const double scale = std::exp(q[c * d + j]);
        diagonal[size_t(c * d + j)] = scale;
        sum += q[c * d + j];
        squares += scale * scale;
      }
      for (int e = 0; e < in.below(); e++)
        squares += below[c * in.below() + e] * below[c * in.below() + e];
      start[size_t(c)] = at[c] + sum;
      prior -= 0.5 * in.gamma * in.gamma * squares - in.freedom * sum;
    }
  }
};

/// off = point - μ and turned = Q off, of one part; the square of the latter.
double turn(const Gmm& in, const double* at, const Prepared& known, const double* point, int part,
            double* off, double* turned) {
  const int d = in.dimensions;
  const double* mean = at + in.means() + part * d;
  const double* diagonal = &known.diagonal[size_t(part * d)];
  for (int j = 0; j < d; j++) {
    off[j] = point[j] - mean[j];
    turned[j] = diagonal[j] * off[j];
  }
  const double* column = at + in.triangles() + part * in.below();
  for (int j = 0; j < d; j++) {
    const double factor = off[j];
    for (int r = j + 1; r < d; r++) turned[r] += column[r - j - 1] * factor;
    column += d - j - 1;
  }
  double squares = 0;
  for (int j = 0; j < d; j++) squares += turned[j] * turned[j];
  return squares;
}

}  // namespace

double gmm(const Gmm& in, const double* at) {
  const Prepared known(in, at);
  double value = known.prior - in.points * log_sum_exp(in.parts, at);
#pragma omp parallel reduction(+ : value)
  {
    std::vector<double> off(size_t(in.dimensions)), turned(off), term(size_t(in.parts));
#pragma omp for
    for (int i = 0; i < in.points; i++) {
      for (int c = 0; c < in.parts; c++)
        term[size_t(c)] =
            known.start[size_t(c)] -
            0.5 * turn(in, at, known, in.point + i * in.dimensions, c, off.data(), turned.data());
      value += log_sum_exp(in.parts, term.data());
    }
  }
  return value;
}

double gmm_gradient(const Gmm& in, const double* at, double* gradient) {
  const int d = in.dimensions, size = in.size();
  const Prepared known(in, at);
  const double of_weights = log_sum_exp(in.parts, at);
  double value = known.prior - in.points * of_weights;
  std::fill(gradient, gradient + size, 0.0);
#pragma omp parallel reduction(+ : value, gradient[ : size])
  {
    const size_t all = size_t(in.parts * d);
    std::vector<double> off(all), turned(all), term(size_t(in.parts));
#pragma omp for
    for (int i = 0; i < in.points; i++) {
      for (int c = 0; c < in.parts; c++)
        term[size_t(c)] =
            known.start[size_t(c)] - 0.5 * turn(in, at, known, in.point + i * d, c,
                                                &off[size_t(c * d)], &turned[size_t(c * d)]);
      const double whole = log_sum_exp(in.parts, term.data());
      value += whole;
      for (int c = 0; c < in.parts; c++) {
        const double share = std::exp(term[size_t(c)] - whole);
        const double *x = &off[size_t(c * d)], *y = &turned[size_t(c * d)];
        const double* column = at + in.triangles() + c * in.below();
        double* of_column = gradient + in.triangles() + c * in.below();
        double *of_mean = gradient + in.means() + c * d, *of_q = gradient + in.logarithms() + c * d;
        gradient[c] += share;
        for (int j = 0; j < d; j++) {
          const double scale = known.diagonal[size_t(c * d + j)];
          double of_off = scale * y[j];
          for (int r = j + 1; r < d; r++) {
            of_off += column[r - j - 1] * y[r];
            of_column[r - j - 1] -= share * y[r] * x[j];
          }
          of_mean[j] += share * of_off;
          of_q[j] += share * (1 - y[j] * x[j] * scale);
          column += d - j - 1;
          of_column += d - j - 1;
        }
      }
    }
  }
  const double gamma = in.gamma * in.gamma;
  for (int c = 0; c < in.parts; c++) {
    gradient[c] -= in.points * std::exp(at[c] - of_weights);
    for (int j = 0; j < d; j++) {
      const double scale = known.diagonal[size_t(c * d + j)];
      gradient[in.logarithms() + c * d + j] += in.freedom - gamma * scale * scale;
    }
    for (int e = c * in.below(); e < (c + 1) * in.below(); e++)
      gradient[in.triangles() + e] -= gamma * at[in.triangles() + e];
  }
  return value;
}

}  // namespace bench::reference
