#pragma once
// Poisson's equation on the unit square by conjugate gradients.
#include <quern/quern.h>

#include "examples/grids.h"

namespace examples {

/// -Δu = f with u given on the boundary, by the five-point stencil on a square of n × n nodes, spacing
/// h = 1 / (n - 1). Conjugate gradients (Hestenes & Stiefel 1952); the whole iteration is one
/// kernel.
class Poisson {
 public:
  explicit Poisson(const Grid<2>& nodes);

  /// Node (i, j) lies at y = i h, x = j h. `u` holds the boundary's values and the first guess,
  /// then the solution; of `f` the inner nodes count.
  quern::Field<double, 2> u, f;

  struct Outcome {
    int iterations;
    double residual;  ///< |f + Δu|, relative to where it began
  };
  /// Iterates until the residual is `tolerance` of the first one, or `limit` times. Waits.
  Outcome solve(double tolerance, int limit = 100000);
  int nodes() const { return n_; }

 private:
  int n_;
  quern::Field<double, 2> r_, p_, q_;
  quern::Kernel<quern::Results<int, double>(quern::lang::F64, quern::lang::I32)> solve_;
};

}  // namespace examples
