// Least squares, log-sum-exp and k-means, with their gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "bench/autodiff/reference.h"
#include "bench/wide.h"

namespace bench::reference {

namespace {

/// Points that are worked on side by side.
constexpr int lanes = 64;

/// t and sign(t) - Σ at_j tʲ of the points from `first` on; those beyond the last one have 0.
void residuals(const Llsq& in, const double* at, int first, double* t, double* off) {
  const double spacing = 2.0 / (in.points - 1);
  double sum[lanes];
  for (int b = 0; b < lanes; b++) {
    t[b] = -1 + (first + b) * spacing;
    sum[b] = 0;
  }
  for (int j = in.coefficients - 1; j >= 0; j--)
    for (int b = 0; b < lanes; b++) sum[b] = sum[b] * t[b] + at[j];
  for (int b = 0; b < lanes; b++) {
    const double sign = t[b] < 0 ? -1.0 : t[b] > 0 ? 1.0 : 0.0;
    off[b] = first + b < in.points ? sign - sum[b] : 0.0;
  }
}

}  // namespace

double llsq(const Llsq& in, const double* at) {
  double value = 0;
#pragma omp parallel for reduction(+ : value)
  for (int first = 0; first < in.points; first += lanes) {
    double t[lanes], off[lanes];
    residuals(in, at, first, t, off);
    for (int b = 0; b < lanes; b++) value += 0.5 * off[b] * off[b];
  }
  return value;
}

double llsq_gradient(const Llsq& in, const double* at, double* gradient) {
  double value = 0;
  std::fill(gradient, gradient + in.coefficients, 0.0);
#pragma omp parallel for reduction(+ : value, gradient[ : in.coefficients])
  for (int first = 0; first < in.points; first += lanes) {
    double t[lanes], off[lanes];
    residuals(in, at, first, t, off);
    for (int b = 0; b < lanes; b++) value += 0.5 * off[b] * off[b];
    for (int j = 0; j < in.coefficients; j++) {
      double sum = 0;
      for (int b = 0; b < lanes; b++) {
        sum += off[b];
        off[b] *= t[b];
      }
      gradient[j] -= sum;
    }
  }
  return value;
}

namespace {

/// Numbers that stay in the first cache from when they are read until they are summed.
constexpr int block = 1024;

/// sum · exp(most)
struct Scaled {
  double most = std::numeric_limits<double>::lowest(), sum = 0;

  void add(const Scaled& other) {
    const double larger = std::max(most, other.most);
    sum = sum * std::exp(most - larger) + other.sum * std::exp(other.most - larger);
    most = larger;
  }
};
#pragma omp declare reduction(merge:Scaled : omp_out.add(omp_in)) initializer(omp_priv = Scaled{})

/// Σ exp(at_i) of one block; its terms go to `power`, without the scale. Each loop does one thing:
/// what it had in registers would be stored around each call of the vector exp.
Scaled sum_of_powers(int count, const double* at, double* power) {
  double most = at[0], sum = 0;
#pragma omp simd reduction(max : most)
  for (int i = 0; i < count; i++) most = at[i] > most ? at[i] : most;
#pragma omp simd
  for (int i = 0; i < count; i++) power[i] = std::exp(at[i] - most);
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < count; i++) sum += power[i];
  return {most, sum};
}

}  // namespace

double log_sum_exp(const LogSumExp& in, const double* at) {
  Scaled all;
#pragma omp parallel for reduction(merge : all)
  for (int first = 0; first < in.count; first += block) {
    double power[block];
    all.add(sum_of_powers(std::min(block, in.count - first), at + first, power));
  }
  return all.most + std::log(all.sum);
}

double log_sum_exp_gradient(const LogSumExp& in, const double* at, double* gradient) {
  Scaled all;
  std::vector<double> most(size_t((in.count + block - 1) / block));
#pragma omp parallel
  {
#pragma omp for schedule(static) reduction(merge : all)
    for (int first = 0; first < in.count; first += block) {
      const Scaled part =
          sum_of_powers(std::min(block, in.count - first), at + first, gradient + first);
      most[size_t(first / block)] = part.most;
      all.add(part);
    }
#pragma omp for schedule(static)
    for (int first = 0; first < in.count; first += block) {
      const double scale = std::exp(most[size_t(first / block)] - all.most) / all.sum;
      const int end = std::min(first + block, in.count);
#pragma omp simd
      for (int i = first; i < end; i++) gradient[i] *= scale;
    }
  }
  return all.most + std::log(all.sum);
}

namespace {

/// Points side by side, in so many vectors.
constexpr int vectors = 4, group = vectors * int(lanes_of<double>);

/// Of the points from `first` on the squared distances to their nearest centroids, and which these
/// are; the last point is repeated. `x` is scratch for their numbers by dimension.
void nearest(const KMeans& in, const double* at, int first, double* x, double* least,
             int64_t* which) {
  const int d = in.dimensions;
  for (int b = 0; b < group; b++) {
    const double* point = in.point + std::min(first + b, in.points - 1) * d;
    for (int j = 0; j < d; j++) x[j * group + b] = point[j];
    least[b] = std::numeric_limits<double>::max();
    which[b] = 0;
  }
  for (int c = 0; c < in.centroids; c++) {
    Wide<double> squares[vectors] = {};
    for (int j = 0; j < d; j++)
      for (int v = 0; v < vectors; v++) {
        const Wide<double> off = at[c * d + j] - load(x + j * group + v * int(lanes_of<double>));
        squares[v] += off * off;
      }
    double square[group];
    std::memcpy(square, squares, sizeof square);
#pragma omp simd
    for (int b = 0; b < group; b++) {
      const bool nearer = square[b] < least[b];
      least[b] = nearer ? square[b] : least[b];
      which[b] = nearer ? c : which[b];
    }
  }
}

}  // namespace

double k_means(const KMeans& in, const double* at) {
  double value = 0;
#pragma omp parallel reduction(+ : value)
  {
    std::vector<double> x(size_t(in.dimensions * group));
#pragma omp for
    for (int first = 0; first < in.points; first += group) {
      double least[group];
      int64_t which[group];
      nearest(in, at, first, x.data(), least, which);
      const int count = std::min(group, in.points - first);
      for (int b = 0; b < count; b++) value += least[b];
    }
  }
  return value;
}

double k_means_gradient(const KMeans& in, const double* at, double* gradient) {
  double value = 0;
  const int d = in.dimensions, size = in.centroids * d;
  std::fill(gradient, gradient + size, 0.0);
#pragma omp parallel reduction(+ : value, gradient[ : size])
  {
    std::vector<double> x(size_t(d * group));
#pragma omp for
    for (int first = 0; first < in.points; first += group) {
      double least[group];
      int64_t which[group];
      nearest(in, at, first, x.data(), least, which);
      const int count = std::min(group, in.points - first);
      for (int b = 0; b < count; b++) {
        const double *point = in.point + (first + b) * d, *centroid = at + which[b] * d;
        double* of_centroid = gradient + which[b] * d;
        value += least[b];
#pragma omp simd
        for (int j = 0; j < d; j++) of_centroid[j] += 2 * (centroid[j] - point[j]);
      }
    }
  }
  return value;
}

}  // namespace bench::reference
