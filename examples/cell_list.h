#pragma once
// Neighbours of particles in the plane by a list of the particles in each cell.
#include <quern/quern.h>

namespace examples {

/// Particles sorted by the square cell they lie in, by counting: how many a cell has, where its
/// first comes, then each to its place (Green, "Particle Simulation using CUDA", 2010).
class CellList {
 public:
  /// For the particles at `x`; cells of side `radius` cover the rectangle from 0 to `size`. Those
  /// outside it count for the nearest cell, which moves no two particles apart, so all near ones
  /// are still found.
  CellList(const quern::Device& device, const quern::Field<quern::lang::vec2>& x, float radius,
           quern::lang::vec2 size);

  /// Sorts the particles where they are now; asynchronous.
  void build() { build_(); }
  /// In a kernel: calls visit(j) for every particle j in the nine cells around `at`, so at least
  /// for all within `radius`. Its body is recorded once, inside two loops.
  template <class F>
  void for_each_near(const quern::lang::Vec2& at, F visit) const {
    auto cell = cell_of(at);
    auto left = max(cell.x - 1, 0), right = min(cell.x + 1, columns_ - 1);
    for (auto row : quern::lang::range(max(cell.y - 1, 0), min(cell.y + 2, rows_)))
      for (auto k :
           quern::lang::range(first_[row * columns_ + left], first_[row * columns_ + right + 1]))
        visit(order_[k]);
  }

 private:
  quern::lang::IVec2 cell_of(const quern::lang::Vec2& at) const;

  float radius_;
  int columns_, rows_;
  quern::Field<quern::lang::vec2> x_;
  quern::Field<int> order_;    ///< the particles, those of a cell together, cells row by row
  quern::Field<int> first_;    ///< of a cell, in `order_`; at the end one more
  quern::Field<int> in_cell_;  ///< how many; while sorting, the next free place
  quern::Field<int> before_row_;
  quern::Kernel<void()> build_;
};

}  // namespace examples
