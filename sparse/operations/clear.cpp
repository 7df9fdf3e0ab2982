// Everything a tree has ends.
#include "quern/algorithms.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

namespace {

template <class I, int N>
void end_all(TreeData& tree, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Topology<N> x) {
                    for (auto i : x.template indices<I>()) lang::deactivate(x, i);
                  },
                  modes("clearing a tree")};
  })(topology<N>(tree), loc);
}

}  // namespace

void clear(TreeData& tree, Loc loc) {
  const Operation operation("clear", tree, loc);
  with_indices(tree, tree, [&]<int N, class I>(Rank<N>, I) { end_all<I, N>(tree, loc); });
}

}  // namespace quern::detail
