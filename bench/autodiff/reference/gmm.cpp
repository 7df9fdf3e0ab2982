// The mixture of Gaussian distributions, with its gradient.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/autodiff/reference.h"
#include "bench/wide.h"

namespace bench::reference {

namespace {

/// Points side by side, in so many vectors: of two of them all coordinates stand in registers.
constexpr int vectors = 2, width = int(lanes_of<double>), group = vectors * width;
using Lanes = Wide<double>;

/// Numbers in a triangle with so many rows, its diagonal among them.
constexpr int triangle(int rows) { return rows * (rows + 1) / 2; }

double log_sum_exp(int count, const double* x) {
  const double most = *std::max_element(x, x + count);
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < count; i++) sum += std::exp(x[i] - most);
  return most + std::log(sum);
}

/// What does not depend on points. Q is by rows here.
struct Prepared {
  std::vector<double> q, start;
  double prior = 0;

  Prepared(const Gmm& in, const double* at)
      : q(size_t(in.parts * triangle(in.dimensions))), start(size_t(in.parts)) {
    const int d = in.dimensions;
    std::vector<double> diagonal(size_t(in.parts * d));
#pragma omp simd
    for (int e = 0; e < in.parts * d; e++) diagonal[size_t(e)] = std::exp(at[in.logarithms() + e]);
    for (int c = 0; c < in.parts; c++) {
      const double *logarithm = at + in.logarithms() + c * d,
                   *below = at + in.triangles() + c * in.below();
      double sum = 0, squares = 0;
      for (int j = 0; j < d; j++) {
        const double scale = diagonal[size_t(c * d + j)];
        double* column = &q[size_t(c * triangle(d))] + j;
        column[triangle(j)] = scale;
        sum += logarithm[j];
        squares += scale * scale;
        for (int r = j + 1; r < d; r++) {
          const double entry = *below++;
          column[triangle(r)] = entry;
          squares += entry * entry;
        }
      }
      start[size_t(c)] = at[c] + sum;
      prior -= 0.5 * in.gamma * in.gamma * squares - in.freedom * sum;
    }
  }
};

/// A thread's points of D coordinates, and what it computes of them: the number is known to the
/// compiler, as it is to Quern's.
template <int D>
struct Points {
  std::vector<double> x, off;
  std::vector<double> power;  ///< of each part exp(its logarithm - the largest)
  double sum[group];          ///< of them

  explicit Points(const Gmm& in)
      : x(size_t(in.dimensions * group)),
        off(size_t((in.dimensions + 1) * group)),
        power(size_t(in.parts * group)) {}

  /// off = (1, point - μ) of one part.
  void shift(const double* mean) {
    for (int b = 0; b < group; b++) off[size_t(b)] = 1;
    for (int j = 0; j < D; j++)
#pragma omp simd
      for (int b = 0; b < group; b++)
        off[size_t((j + 1) * group + b)] = x[size_t(j * group + b)] - mean[j];
  }

  /// The sum of the points' logarithms from `first` on. The last point is repeated, but not added.
  double measure(const Gmm& in, const double* at, const Prepared& known, int first) {
    double most[group];
    for (int b = 0; b < group; b++) {
      const double* point = in.point + std::min(first + b, in.points - 1) * D;
      for (int j = 0; j < D; j++) x[size_t(j * group + b)] = point[j];
      most[b] = std::numeric_limits<double>::lowest();
      sum[b] = 0;
    }
    for (int c = 0; c < in.parts; c++) {
      double* term = &power[size_t(c * group)];
      shift(at + in.means() + c * D);
      square(&known.q[size_t(c * triangle(D))], term);
#pragma omp simd
      for (int b = 0; b < group; b++) {
        term[b] = known.start[size_t(c)] - 0.5 * term[b];
        most[b] = term[b] > most[b] ? term[b] : most[b];
      }
    }
    for (int c = 0; c < in.parts; c++) {
      double* term = &power[size_t(c * group)];
#pragma omp simd
      for (int b = 0; b < group; b++) term[b] = std::exp(term[b] - most[b]);
#pragma omp simd
      for (int b = 0; b < group; b++) sum[b] += term[b];
    }
#pragma omp simd
    for (int b = 0; b < group; b++) most[b] += std::log(sum[b]);
    double value = 0;
    for (int b = 0; b < std::min(group, in.points - first); b++) value += most[b];
    return value;
  }

  /// |Q off|² of each point.
  void square(const double* q, double* out) const {
    Lanes squares[vectors] = {};
#pragma GCC unroll 16
    for (int r = 0; r < D; r++) {
      Lanes turned[vectors] = {};
#pragma GCC unroll 16
      for (int j = 0; j <= r; j++)
        for (int v = 0; v < vectors; v++)
          turned[v] += q[triangle(r) + j] * load(&off[size_t((j + 1) * group + v * width)]);
      for (int v = 0; v < vectors; v++) squares[v] += turned[v] * turned[v];
    }
    for (int v = 0; v < vectors; v++) store(out + v * width, squares[v]);
  }

  /// Adds share · off offᵀ, its lower triangle, of all parts to `moment`, which has lanes.
  void add_moments(const Gmm& in, const double* at, int first, double* moment) {
    double scale[group];
    for (int b = 0; b < group; b++) scale[b] = first + b < in.points ? 1 / sum[b] : 0.0;
    for (int c = 0; c < in.parts; c++) {
      shift(at + in.means() + c * D);
      const double* of_part = &power[size_t(c * group)];
#pragma GCC unroll 16
      for (int r = 0; r <= D; r++) {
        Lanes row[vectors];
        for (int v = 0; v < vectors; v++)
          row[v] = load(of_part + v * width) * load(scale + v * width) *
                   load(&off[size_t(r * group + v * width)]);
#pragma GCC unroll 16
        for (int j = 0; j <= r; j++) {
          Lanes all = load(moment);
          for (int v = 0; v < vectors; v++)
            all += row[v] * load(&off[size_t(j * group + v * width)]);
          store(moment, all);
          moment += width;
        }
      }
    }
  }
};

/// One part's derivatives by what points gave to it. As a term is -|Q off|² / 2 and more that does
/// not depend on points, these are linear in the moments: those by Q are -Q Σ share off offᵀ.
void finish(const Gmm& in, const Prepared& known, int part, const double* moment,
            double* gradient) {
  const int d = in.dimensions;
  const double* q = &known.q[size_t(part * triangle(d))];
  double *of_mean = gradient + in.means() + part * d,
         *of_log = gradient + in.logarithms() + part * d,
         *of_below = gradient + in.triangles() + part * in.below();
  // Of coordinates k and j, of which -1 is the 1 before the others.
  auto between = [&](int k, int j) {
    return moment[triangle(std::max(k, j) + 1) + std::min(k, j) + 1];
  };
  const double gamma = in.gamma * in.gamma;
  std::fill(of_mean, of_mean + d, 0.0);
  for (int r = 0; r < d; r++) {
    const double* row = q + triangle(r);
    auto turned = [&](int j) {
      double sum = 0;
      for (int k = 0; k <= r; k++) sum += row[k] * between(k, j);
      return sum;
    };
    const double of_row = turned(-1);
    for (int j = 0; j <= r; j++) of_mean[j] += row[j] * of_row;
    for (int j = 0; j < r; j++)
      of_below[triangle(d - 1) - triangle(d - 1 - j) + r - j - 1] = -turned(j) - gamma * row[j];
    of_log[r] = moment[0] - row[r] * turned(r) + in.freedom - gamma * row[r] * row[r];
  }
}

template <int D>
double value_of(const Gmm& in, const double* at) {
  const Prepared known(in, at);
  double value = known.prior - in.points * log_sum_exp(in.parts, at);
#pragma omp parallel reduction(+ : value)
  {
    Points<D> points(in);
#pragma omp for
    for (int first = 0; first < in.points; first += group)
      value += points.measure(in, at, known, first);
  }
  return value;
}

template <int D>
double gradient_of(const Gmm& in, const double* at, double* gradient) {
  const Prepared known(in, at);
  const double of_weights = log_sum_exp(in.parts, at);
  double value = known.prior - in.points * of_weights;
  const int of_part = triangle(in.dimensions + 1), all = in.parts * of_part;
  std::vector<double> moments(size_t(all), 0.0);
  double* moment = moments.data();
#pragma omp parallel reduction(+ : value, moment[ : all])
  {
    Points<D> points(in);
    std::vector<double> lanes(size_t(all * width), 0.0);
#pragma omp for
    for (int first = 0; first < in.points; first += group) {
      value += points.measure(in, at, known, first);
      points.add_moments(in, at, first, lanes.data());
    }
    for (int k = 0; k < all; k++)
      for (int l = 0; l < width; l++) moment[k] += lanes[size_t(k * width + l)];
  }
  for (int c = 0; c < in.parts; c++) {
    const double* of_this = moment + c * of_part;
    gradient[c] = of_this[0] - in.points * std::exp(at[c] - of_weights);
    finish(in, known, c, of_this, gradient);
  }
  return value;
}

}  // namespace

double gmm(const Gmm& in, const double* at) {
  if (in.dimensions == 10) return value_of<10>(in, at);
  if (in.dimensions == 3) return value_of<3>(in, at);
  throw std::invalid_argument("there is no mixture by hand of " + std::to_string(in.dimensions) +
                              " dimensions");
}

double gmm_gradient(const Gmm& in, const double* at, double* gradient) {
  if (in.dimensions == 10) return gradient_of<10>(in, at, gradient);
  if (in.dimensions == 3) return gradient_of<3>(in, at, gradient);
  throw std::invalid_argument("there is no mixture by hand of " + std::to_string(in.dimensions) +
                              " dimensions");
}

}  // namespace bench::reference
