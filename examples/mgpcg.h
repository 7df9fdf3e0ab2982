#pragma once
// Poisson's equation in a region of any shape by conjugate gradients with a multigrid cycle.
#include <quern/sparse.h>

#include <vector>

namespace examples {

/// -Δu = f in the region that is active on a tree, with u = 0 at the elements beside it, by the
/// seven-point stencil: conjugate gradients, preconditioned with a multigrid V-cycle (McAdams, Sifakis
/// & Teran, "A parallel multigrid Poisson solver for fluids simulation on large grids", SCA 2010).
/// Each level is a tree of half the resolution; smoothing is red-black Gauss-Seidel in an order that
/// keeps the cycle symmetric, residuals become coarser by the mean of eight, corrections finer as
/// constants. Those are twice what Galerkin's coarse equation would yield, which is about what they
/// should be (Braess, "Towards algebraic multigrid for elliptic problems of second order", Computing
/// 1995). The cycle is in single precision, all else in double.
class Mgpcg {
 public:
  struct Setup {
    int levels = 5;
    int smoothing = 2;  ///< sweeps over both colours, before the coarser level and after it
    int coarsest = 20;  ///< there: as many forwards and as many backwards
  };
  /// A tree without active elements for a region within 0 ≤ i, j, k < n, with the margin that so many
  /// levels want. Throws quern::Error for n or levels below 1 and for more than 16 levels.
  static quern::Tree<3> box(const quern::Device& device, int n, int levels,
                            quern::Loc loc = quern::Loc::here());

  /// In what is active on the tree now, with elements `spacing` apart; what becomes active later has
  /// no equation. Waits. Throws quern::Error for a region that reaches the end of the tree on one of
  /// the levels, and where there is no level, no smoothing or no sweep on the coarsest.
  explicit Mgpcg(const quern::Tree<3>& region, double spacing, const Setup& setup,
                 quern::Loc loc = quern::Loc::here());

  /// `u` holds the first guess, then the solution.
  quern::Field<double, 3> u, f;

  struct Outcome {
    int iterations;
    double residual;  ///< |f + Δu|, relative to where it began
  };
  /// Iterates until the residual is `tolerance` of the first one, or `limit` times. Waits.
  Outcome solve(double tolerance, int limit = 100);

  /// One V-cycle, and one sweep of its smoothing over both colours of the finest level, by
  /// themselves, on what the last `solve` left; asynchronous.
  void cycle() { cycle_(); }
  void smooth() { smooth_(); }

 private:
  /// Each has the equation 6 z - (sum of the six z around) = 4^level b.
  struct Level {
    quern::Tree<3> tree;
    quern::Field<float, 3> z, b;
    quern::Field<float, 3> other;  ///< z before or behind half a sweep
    explicit Level(const quern::Tree<3>& t)
        : tree(t), z(t.field<float>()), b(t.field<float>()), other(t.field<float>()) {}
  };
  static std::vector<Level> levels(const quern::Tree<3>& region, const Setup& setup,
                                   quern::Loc loc);
  void expect_margin(const Level& level, size_t number, quern::Loc loc) const;
  void relax(size_t level, const quern::Field<float, 3>& from, const quern::Field<float, 3>& to,
             int colour) const;
  void relax_all(size_t level) const;
  void descend(size_t level) const;

  double spacing_;
  Setup setup_;
  std::vector<Level> levels_;
  quern::Field<double, 3> r_, p_, q_;
  quern::Kernel<quern::Results<int, double>(quern::lang::F64, quern::lang::F64, quern::lang::I32)>
      solve_;
  quern::Kernel<void()> cycle_, smooth_;
};

}  // namespace examples
