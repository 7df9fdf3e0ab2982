#pragma once
// Known problems for derivatives, each a function of some numbers, `at`: what it computes, and what
// of it is not varied. They are those of GradBench (gradbench.dev: evals/), but for layer and conv;
// lstm, gmm and ba come from ADBench (Šrajer, Kukelova & Fitzgibbon, "A benchmark of selected
// algorithmic differentiation tools on some problems in computer vision and machine learning",
// 2018), llsq, det and ode from cmpad (github.com/bradbell/cmpad).
#include <cstdint>

namespace bench {

/// Least squares: at_j are the coefficients of a polynomial that approximates the sign of t:
/// Σ (sign(t_i) - Σ at_j t_iʲ)² / 2, where the t_i divide [-1, 1] evenly.
struct Llsq {
  int points, coefficients;
};

/// log Σ exp(at_i), without overflow.
struct LogSumExp {
  int count;
};

/// Σ over points of the squared distance to the nearest of the centroids, which are `at`, by rows.
struct KMeans {
  int points, centroids, dimensions;
  const double* point;  ///< by rows
};

/// Of a mixture of Gaussian distributions the logarithm of the likelihood of points, times a prior
/// of Wishart's, without what is constant. `at`: for each part of the mixture its weight α; its
/// mean μ; then q, logarithms of the diagonal of a lower triangle Q, and what is below it by
/// columns, where QᵀQ is the inverse of the covariance. Weights are of all parts, then means, and
/// so on.
struct Gmm {
  int dimensions, parts, points;
  int freedom;   ///< of the prior, degrees beyond the least
  double gamma;  ///< of the prior
  const double* point;

  int below() const { return dimensions * (dimensions - 1) / 2; }
  int means() const { return parts; }  ///< where they begin in `at`
  int logarithms() const { return means() + parts * dimensions; }
  int triangles() const { return logarithms() + parts * dimensions; }
  int size() const { return triangles() + parts * below(); }
};

/// The determinant of a square matrix, which is `at` by rows, by expansion along rows.
struct Determinant {
  int rows;  ///< 6 to 9
};

/// y_0' = at_0 and y_i' = at_i y_(i-1), from 0 at time 0 to time 2 in steps of the classical method
/// of Runge and Kutta; Σ y_i then. (In GradBench the last y_i, whose derivatives are 0 in numbers.)
struct Ode {
  int unknowns, steps;
};

/// Bundle adjustment: half the sum of squares of how far what cameras see is from what they should,
/// times a weight w, and of 1 - w². (In GradBench these numbers and their Jacobian.) `at`: of each
/// camera a rotation's axis, as long as the angle and not 0, its place, focal length, principal
/// point and two coefficients of distortion; then points, then weights of observations.
struct Bundle {
  static constexpr int of_camera = 11;
  int cameras, points, observations;
  const int *camera, *point;  ///< of each observation, by points
  const int* first;           ///< observations of point j: from first[j] to first[j + 1]
  const double* seen;         ///< two coordinates of each

  int places() const { return cameras * of_camera; }  ///< of points, where they begin in `at`
  int weights() const { return places() + 3 * points; }
  int size() const { return weights() + observations; }
};

/// A recurrent network of layers with long short-term memory, whose matrices are diagonal, guesses
/// the next characters of a text: -Σ over them of the logarithm of the likelihood that it gave, a
/// bit. `at`: of each layer four weights and four biases of every bit, for what is forgotten, let
/// in, let out, and for the change, by kind, then bit; then weights of the input, weights and
/// biases of the output.
struct Lstm {
  int layers, characters, bits;
  const double* state;  ///< at first: hidden numbers and cells of each layer
  const double* text;   ///< bits of each character

  int of_layer() const { return 8 * bits; }
  int input() const { return layers * of_layer(); }  ///< where its weights begin in `at`
  int size() const { return input() + 3 * bits; }
  double guesses() const { return double(characters - 1) * bits; }
};

/// A dense layer: Σ over points b and outputs o of (tanh(Σ over i of point(b, i) at(i, o)) -
/// wanted(b, o))² / 2.
struct Layer {
  int points, inputs, outputs;
  const double *point, *wanted;  ///< by rows
};

/// A convolution through a rectifier: Σ over filters n and pixels of (max(0, Σ over channels c and
/// offsets a, k of image(c, i + a, j + k) filter(n, c, a, k)) - wanted(n, i, j))² / 2. `at`: the
/// image, then the filters.
struct Convolution {
  static constexpr int wide = 5;
  int channels, filters, rows, columns;  ///< of the result
  const double* wanted;

  int image_rows() const { return rows + wide - 1; }
  int image_columns() const { return columns + wide - 1; }
  int weights() const { return channels * image_rows() * image_columns(); }  ///< where they begin
  int size() const { return weights() + filters * channels * wide * wide; }
};

}  // namespace bench
