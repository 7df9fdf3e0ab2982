#pragma once
// Neighbours of particles in the plane by lists that grow, on a tree.
#include <quern/sparse.h>

#include "examples/neighbours.h"

namespace examples {

/// A list of particles for each square cell, which has memory for as many as it holds.
class TreeLists final : public Neighbours {
 public:
  /// For the particles at `x`; cells of side `radius` cover the rectangle from 0 to `size`. Those
  /// outside it count for the nearest cell. A cell of more than 1,024 particles is a failed check.
  TreeLists(const quern::Device& device, const quern::Field<quern::lang::vec2>& x, float radius,
            quern::lang::vec2 size);

  void build() override { build_(); }
  void for_each_near(const quern::lang::Vec2& at,
                     const std::function<void(quern::lang::I32)>& visit) const override;

 private:
  CellGrid grid_;
  quern::Field<quern::lang::vec2> x_;
  quern::Tree<3> tree_;
  quern::Field<int, 3> lists_;  ///< {row, column, place}
  quern::Kernel<void()> build_;
};

}  // namespace examples
