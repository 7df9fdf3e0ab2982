// Trees of half and of twice the resolution.
#include "quern/algorithms.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

namespace {

using namespace lang;

/// The same levels, of which the outermost has as many cells as the shape takes.
std::shared_ptr<TreeData> resized(const TreeData& tree, const std::vector<int64_t>& shape,
                                  const std::vector<int64_t>& firsts, Loc loc) {
  std::vector<TreeLevel> levels = tree.levels;
  const bool endless = levels[0].kind == TreeLevel::hash;
  for (size_t axis = 0; axis < shape.size() && !endless; axis++) {
    int64_t inner = 1;
    for (size_t k = 1; k < levels.size(); k++) inner *= levels[k].n[axis];
    const int64_t wanted = std::max<int64_t>(1, (shape[axis] + inner - 1) / inner);
    levels[0].n[axis] = int(std::min<int64_t>(wanted, INT32_MAX));
  }
  return make_tree(tree.device, tree.rank, levels, shape, firsts, 0, loc);
}

template <class I, int N>
void activate_parents(TreeData& coarse, TreeData& fine, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Topology<N> x, Topology<N> y) {
                    for (auto i : y.wide()) activate(x, parent_of<N, I>(i));
                  },
                  modes("coarsening a tree")};
  })(topology<N>(coarse), topology<N>(fine), loc);
}

template <class I, int N>
void activate_children(TreeData& fine, TreeData& coarse, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Topology<N> x, Topology<N> y) {
                    for (auto i : y.template indices<I>())
                      for (auto child : range(1 << N)) activate(x, child_of<N, I>(i, child));
                  },
                  modes("refining a tree")};
  })(topology<N>(fine), topology<N>(coarse), loc);
}

}  // namespace

std::shared_ptr<TreeData> coarse_tree(TreeData& tree, Loc loc) {
  const Operation operation("coarsen", tree, loc);
  expect_no_lists("coarsen", tree, loc);
  std::vector<int64_t> shape, firsts;
  for (size_t axis = 0; axis < tree.shape.size(); axis++) {
    const int64_t first = tree.firsts[axis] >> 1, end = tree.firsts[axis] + tree.shape[axis];
    firsts.push_back(first);
    shape.push_back(tree.shape[axis] == 0 ? 0 : ((end - 1) >> 1) + 1 - first);
  }
  auto made = resized(tree, shape, firsts, loc);
  with_indices(*made, *made,
               [&]<int N, class I>(Rank<N>, I) { activate_parents<I, N>(*made, tree, loc); });
  return made;
}

std::shared_ptr<TreeData> fine_tree(TreeData& tree, Loc loc) {
  const Operation operation("refine", tree, loc);
  expect_no_lists("refine", tree, loc);
  std::vector<int64_t> shape, firsts;
  constexpr int64_t most = int64_t(1) << 62;
  for (size_t axis = 0; axis < tree.shape.size(); axis++) {
    if (tree.shape[axis] > most / 2 || std::abs(tree.firsts[axis]) > most / 2)
      throw Error(loc, "refine of a tree of shape " + runtime::shape_text(tree.shape) +
                           " from index " + runtime::shape_text(tree.firsts) +
                           " on: twice its indices are beyond 2^62");
    shape.push_back(2 * tree.shape[axis]);
    firsts.push_back(2 * tree.firsts[axis]);
  }
  auto made = resized(tree, shape, firsts, loc);
  with_indices(*made, tree,
               [&]<int N, class I>(Rank<N>, I) { activate_children<I, N>(*made, tree, loc); });
  return made;
}

}  // namespace quern::detail
