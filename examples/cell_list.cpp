#include "examples/cell_list.h"

#include <cmath>

namespace examples {

namespace qn = quern;
using namespace qn::lang;

IVec2 CellList::cell_of(const Vec2& at) const {
  auto cell = ifloor(at / radius_);
  return vec(clamp(cell.x, 0, columns_ - 1), clamp(cell.y, 0, rows_ - 1));
}

CellList::CellList(const qn::Device& device, const qn::Field<vec2>& x, float radius, vec2 size)
    : radius_(radius),
      columns_(int(std::ceil(size.x / radius))),
      rows_(int(std::ceil(size.y / radius))),
      x_(x),
      order_{device, {x.size()}},
      first_{device, {rows_ * columns_ + 1}},
      in_cell_{device, {rows_ * columns_}},
      before_row_{device, {rows_}},
      build_{[this] {
        auto cell = [&](const I32& i) {
          auto c = cell_of(x_[i]);
          return c.y * columns_ + c.x;
        };
        for (auto c : in_cell_) in_cell_[c] = 0;
        for (auto i : x_) in_cell_[cell(i)] += 1;
        // The sums of what comes before: along the rows, over the rows, along the rows.
        for (auto row : before_row_) {
          Var<int> sum = 0;
          for (auto column : range(columns_)) sum += in_cell_[row * columns_ + column];
          before_row_[row] = sum;
        }
        Var<int> sum = 0;
        for (auto row : serial(before_row_)) {
          auto in_row = before_row_[row];
          before_row_[row] = sum;
          sum += in_row;
        }
        first_[rows_ * columns_] = sum;
        for (auto row : before_row_) {
          Var<int> place = before_row_[row];
          for (auto column : range(columns_)) {
            auto c = row * columns_ + column;
            auto count = in_cell_[c];
            first_[c] = place;
            in_cell_[c] = place;
            place += count;
          }
        }
        for (auto i : x_) order_[atomic_add(in_cell_[cell(i)], 1)] = i;
      }} {}

}  // namespace examples
