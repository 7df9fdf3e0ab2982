#pragma once
// Known problems for derivatives, each a function of some numbers, `at`: what it computes, and what of
// it is not varied. They are those of GradBench (gradbench.dev: evals/), of which lstm, gmm and ba come
// from ADBench (Šrajer, Kukelova & Fitzgibbon, "A benchmark of selected algorithmic differentiation
// tools on some problems in computer vision and machine learning", 2018), llsq, det and ode from
// cmpad (github.com/bradbell/cmpad).
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

/// Of a mixture of Gaussian distributions the logarithm of the likelihood of points, times a prior of
/// Wishart's, without what is constant. `at`: for each part of the mixture its weight α; its mean μ;
/// then q, logarithms of the diagonal of a lower triangle Q, and what is below it by columns, where
/// QᵀQ is the inverse of the covariance. Weights are of all parts, then means, and so on.
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

}  // namespace bench
