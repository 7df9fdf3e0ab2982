// A dense layer and a convolution, with their gradients.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/autodiff/reference.h"

namespace bench::reference {

namespace {

/// Rows that are worked on together, so that what they share is read once.
constexpr int together = 4;

/// What goes into the units of a point, or of several: sum(b, o) = Σ point(b, i) at(i, o).
void sums(const Layer& in, const double* at, int first, int end, double* sum) {
  const int O = in.outputs;
  std::fill(sum, sum + size_t(end - first) * O, 0.0);
  for (int i = 0; i < in.inputs; i++) {
    const double* row = at + size_t(i) * O;
    if (end - first == together) {
      const double* p = in.point + size_t(first) * in.inputs + i;
      const double p0 = p[0], p1 = p[in.inputs], p2 = p[2 * in.inputs], p3 = p[3 * in.inputs];
#pragma omp simd
      for (int o = 0; o < O; o++) {
        const double w = row[o];
        sum[o] += p0 * w;
        sum[O + o] += p1 * w;
        sum[2 * O + o] += p2 * w;
        sum[3 * O + o] += p3 * w;
      }
      continue;
    }
    for (int b = first; b < end; b++) {
      const double p = in.point[size_t(b) * in.inputs + i];
#pragma omp simd
      for (int o = 0; o < O; o++) sum[size_t(b - first) * O + o] += p * row[o];
    }
  }
}

/// The loss, and where `adjoint` is given, by rows, those of the sums.
double layer_loss(const Layer& in, const double* at, double* adjoint) {
  const int O = in.outputs;
  double value = 0;
#pragma omp parallel for reduction(+ : value)
  for (int first = 0; first < in.points; first += together) {
    const int end = std::min(first + together, in.points);
    std::vector<double> sum(size_t(together) * O);
    sums(in, at, first, end, sum.data());
    for (int k = 0; k < (end - first) * O; k++) {
      const double y = std::tanh(sum[size_t(k)]);
      const double off = y - in.wanted[size_t(first) * O + k];
      value += 0.5 * off * off;
      if (adjoint) adjoint[size_t(first) * O + k] = off * (1 - y * y);
    }
  }
  return value;
}

}  // namespace

double layer(const Layer& in, const double* at) { return layer_loss(in, at, nullptr); }

double layer_gradient(const Layer& in, const double* at, double* gradient) {
  const int O = in.outputs;
  std::vector<double> adjoint(size_t(in.points) * O);
  const double value = layer_loss(in, at, adjoint.data());
#pragma omp parallel for
  for (int first = 0; first < in.inputs; first += together) {
    const int end = std::min(first + together, in.inputs);
    double* rows = gradient + size_t(first) * O;
    std::fill(rows, rows + size_t(end - first) * O, 0.0);
    for (int b = 0; b < in.points; b++) {
      const double* t = adjoint.data() + size_t(b) * O;
      const double* p = in.point + size_t(b) * in.inputs + first;
      if (end - first == together) {
        const double p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
#pragma omp simd
        for (int o = 0; o < O; o++) {
          rows[o] += p0 * t[o];
          rows[O + o] += p1 * t[o];
          rows[2 * O + o] += p2 * t[o];
          rows[3 * O + o] += p3 * t[o];
        }
        continue;
      }
      for (int i = first; i < end; i++)
#pragma omp simd
        for (int o = 0; o < O; o++) rows[size_t(i - first) * O + o] += p[i - first] * t[o];
    }
  }
  return value;
}

namespace {

constexpr int wide = Convolution::wide;

/// A row of a convolution: sum(j) += Σ over offsets of row(i + a, j + k) filter(a, k).
void add_row(const double* from, int columns_of_from, const double* filter, int columns,
             double* sum) {
  for (int a = 0; a < wide; a++) {
    const double* row = from + size_t(a) * columns_of_from;
    const double* f = filter + a * wide;
#pragma omp simd
    for (int j = 0; j < columns; j++)
      sum[j] += f[0] * row[j] + f[1] * row[j + 1] + f[2] * row[j + 2] + f[3] * row[j + 3] +
                f[4] * row[j + 4];
  }
}

/// The loss, and where `adjoint` is given those of the sums, with wide - 1 zeros around each of
/// their images.
double convolution_loss(const Convolution& in, const double* at, double* adjoint) {
  const int border = wide - 1, padded_rows = in.rows + 2 * border, padded = in.columns + 2 * border;
  double value = 0;
#pragma omp parallel for collapse(2) reduction(+ : value)
  for (int n = 0; n < in.filters; n++)
    for (int i = 0; i < in.rows; i++) {
      std::vector<double> sum(size_t(in.columns), 0.0);
      for (int c = 0; c < in.channels; c++)
        add_row(at + (size_t(c) * in.image_rows() + i) * in.image_columns(), in.image_columns(),
                at + in.weights() + (size_t(n) * in.channels + c) * wide * wide, in.columns,
                sum.data());
      for (int j = 0; j < in.columns; j++) {
        const double y = sum[size_t(j)] > 0 ? sum[size_t(j)] : 0.0;
        const double off = y - in.wanted[(size_t(n) * in.rows + i) * in.columns + j];
        value += 0.5 * off * off;
        if (adjoint)
          adjoint[(size_t(n) * padded_rows + i + border) * padded + j + border] =
              sum[size_t(j)] > 0 ? off : 0.0;
      }
    }
  return value;
}

}  // namespace

double convolution(const Convolution& in, const double* at) {
  return convolution_loss(in, at, nullptr);
}

double convolution_gradient(const Convolution& in, const double* at, double* gradient) {
  const int border = wide - 1, padded_rows = in.rows + 2 * border, padded = in.columns + 2 * border;
  std::vector<double> adjoint(size_t(in.filters) * padded_rows * padded, 0.0);
  const double value = convolution_loss(in, at, adjoint.data());
  // The image's: a convolution of the adjoints with the filters turned round.
#pragma omp parallel for collapse(2)
  for (int c = 0; c < in.channels; c++)
    for (int p = 0; p < in.image_rows(); p++) {
      double* row = gradient + (size_t(c) * in.image_rows() + p) * in.image_columns();
      std::fill(row, row + in.image_columns(), 0.0);
      for (int n = 0; n < in.filters; n++) {
        const double* f = at + in.weights() + (size_t(n) * in.channels + c) * wide * wide;
        double turned[wide * wide];
        std::reverse_copy(f, f + wide * wide, turned);
        add_row(adjoint.data() + (size_t(n) * padded_rows + p) * padded, padded, turned,
                in.image_columns(), row);
      }
    }
#pragma omp parallel for collapse(2)
  for (int n = 0; n < in.filters; n++)
    for (int c = 0; c < in.channels; c++)
      for (int a = 0; a < wide; a++) {
        double sum[wide] = {};
        for (int i = 0; i < in.rows; i++) {
          const double* t =
              adjoint.data() + (size_t(n) * padded_rows + i + border) * padded + border;
          const double* row = at + (size_t(c) * in.image_rows() + i + a) * in.image_columns();
          double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, s4)
          for (int j = 0; j < in.columns; j++) {
            s0 += t[j] * row[j];
            s1 += t[j] * row[j + 1];
            s2 += t[j] * row[j + 2];
            s3 += t[j] * row[j + 3];
            s4 += t[j] * row[j + 4];
          }
          const double of_row[wide] = {s0, s1, s2, s3, s4};
          for (int k = 0; k < wide; k++) sum[k] += of_row[k];
        }
        double* to = gradient + in.weights() + ((size_t(n) * in.channels + c) * wide + a) * wide;
        std::copy(sum, sum + wide, to);
      }
  return value;
}

}  // namespace bench::reference
