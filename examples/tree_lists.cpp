#include "examples/tree_lists.h"

namespace examples {

namespace qn = quern;
using namespace qn::lang;

void TreeLists::for_each_near(const Vec2& at, const std::function<void(I32)>& visit) const {
  auto cell = grid_.cell_of(at);
  for (auto row : range(max(cell.y - 1, 0), min(cell.y + 2, grid_.rows)))
    for (auto column : range(max(cell.x - 1, 0), min(cell.x + 2, grid_.columns)))
      for (auto k : range(length(lists_, row, column))) visit(lists_(row, column, k));
}

TreeLists::TreeLists(const qn::Device& device, const qn::Field<vec2>& x, float radius, vec2 size)
    : grid_(radius, size),
      x_(x),
      tree_{device, {qn::dense(grid_.rows, grid_.columns, 1), qn::dynamic(1024, 16)}},
      lists_(tree_.field<int>()),
      build_{[this] {
        for (auto [row, column, k] : lists_) deactivate(lists_, row, column, k);
        for (auto i : x_) {
          auto cell = grid_.cell_of(x_[i]);
          append(lists_, cell.y, cell.x, i);
        }
      }} {}

}  // namespace examples
