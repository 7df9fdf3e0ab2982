#pragma once
// What finds the particles near a place.
#include <quern/quern.h>

#include <cmath>
#include <functional>

namespace examples {

/// Square cells that cover the rectangle from 0 to `size`. What lies outside it counts for the nearest
/// cell, which moves no two places apart.
struct CellGrid {
  CellGrid(float side_, quern::lang::vec2 size)
      : side(side_),
        columns(int(std::ceil(size.x / side_))),
        rows(int(std::ceil(size.y / side_))) {}
  /// Column and row.
  quern::lang::IVec2 cell_of(const quern::lang::Vec2& at) const {
    auto cell = ifloor(at / side);
    return quern::lang::vec(clamp(cell.x, 0, columns - 1), clamp(cell.y, 0, rows - 1));
  }
  float side;
  int columns, rows;
};

class Neighbours {
 public:
  virtual ~Neighbours() = default;
  /// Sorts the particles where they are now; asynchronous.
  virtual void build() = 0;
  /// In a kernel: calls visit(j) for every particle j in the cells around `at`, so at least for all
  /// within the radius that it was made for. `visit` is recorded once, inside loops.
  virtual void for_each_near(const quern::lang::Vec2& at,
                             const std::function<void(quern::lang::I32)>& visit) const = 0;
};

}  // namespace examples
