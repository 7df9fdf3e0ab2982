#pragma once
// Neighbours of particles in the plane by a list of the particles in each cell.
#include "examples/neighbours.h"

namespace examples {

/// Particles sorted by the square cell they lie in, by counting: how many a cell has, where its
/// first comes, then each to its place (Green, "Particle Simulation using CUDA", 2010).
class CellList final : public Neighbours {
 public:
  /// For the particles at `x`; cells of side `radius` cover the rectangle from 0 to `size`. Those
  /// outside it count for the nearest cell, which moves no two particles apart, so all near ones
  /// are still found.
  CellList(const quern::Device& device, const quern::Field<quern::lang::vec2>& x, float radius,
           quern::lang::vec2 size);

  void build() override { build_(); }
  void for_each_near(const quern::lang::Vec2& at,
                     const std::function<void(quern::lang::I32)>& visit) const override;

 private:
  CellGrid grid_;
  quern::Field<quern::lang::vec2> x_;
  quern::Field<int> order_;    ///< the particles, those of a cell together, cells row by row
  quern::Field<int> first_;    ///< of a cell, in `order_`; at the end one more
  quern::Field<int> in_cell_;  ///< how many; while sorting, the next free place
  quern::Field<int> before_row_;
  quern::Kernel<void()> build_;
};

}  // namespace examples
