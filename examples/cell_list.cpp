#include "examples/cell_list.h"

namespace examples {

namespace qn = quern;
using namespace qn::lang;

void CellList::for_each_near(const Vec2& at, const std::function<void(I32)>& visit) const {
  auto cell = grid_.cell_of(at);
  auto left = max(cell.x - 1, 0), right = min(cell.x + 1, grid_.columns - 1);
  for (auto row : range(max(cell.y - 1, 0), min(cell.y + 2, grid_.rows)))
    for (auto k :
         range(first_[row * grid_.columns + left], first_[row * grid_.columns + right + 1]))
      visit(order_[k]);
}

CellList::CellList(const qn::Device& device, const qn::Field<vec2>& x, float radius, vec2 size)
    : grid_(radius, size),
      x_(x),
      order_{device, {x.size()}},
      first_{device, {grid_.rows * grid_.columns + 1}},
      in_cell_{device, {grid_.rows * grid_.columns}},
      before_row_{device, {grid_.rows}},
      build_{[this] {
        auto cell = [&](const I32& i) {
          auto c = grid_.cell_of(x_[i]);
          return c.y * grid_.columns + c.x;
        };
        for (auto c : in_cell_) in_cell_[c] = 0;
        for (auto i : x_) in_cell_[cell(i)] += 1;
        // The sums of what comes before: along the rows, over the rows, along the rows.
        for (auto row : before_row_) {
          Var<int> sum = 0;
          for (auto column : range(grid_.columns)) sum += in_cell_[row * grid_.columns + column];
          before_row_[row] = sum;
        }
        Var<int> sum = 0;
        for (auto row : serial(before_row_)) {
          auto in_row = before_row_[row];
          before_row_[row] = sum;
          sum += in_row;
        }
        first_[grid_.rows * grid_.columns] = sum;
        for (auto row : before_row_) {
          Var<int> place = before_row_[row];
          for (auto column : range(grid_.columns)) {
            auto c = row * grid_.columns + column;
            auto count = in_cell_[c];
            first_[c] = place;
            in_cell_[c] = place;
            place += count;
          }
        }
        for (auto i : x_) order_[atomic_add(in_cell_[cell(i)], 1)] = i;
      }} {}

}  // namespace examples
