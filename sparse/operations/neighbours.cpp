// Dilation and erosion (as in Museth, "VDB: High-resolution sparse volumes with dynamic topology",
// ACM Transactions on Graphics 32, 2013, whose neighbourhoods these are): of elements one by one, so
// that a tree whose units are larger is dilated in a copy that has a bit for each element.
#include "quern/algorithms.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

namespace {

using namespace lang;

/// Calls `visit` with the indices of the neighbours that differ along one axis, and along two.
template <int N, class I, class F>
void each_neighbour(const Val<TreeIndex<N, I>>& from, bool edges, F&& visit) {
  const auto sign = [](const I32& bit) { return cast<I>((bit & 1) * 2 - 1); };
  for (int a = 0; a < N; a++) {
    for (auto side : range(2))
      visit(index_from<N, I>([&](int axis) {
        Val<I> at = along<N, I>(from, axis);
        return axis == a ? at + sign(side) : at;
      }));
    for (int b = edges ? a + 1 : N; b < N; b++)
      for (auto sides : range(4))
        visit(index_from<N, I>([&](int axis) {
          Val<I> at = along<N, I>(from, axis);
          return axis == a ? at + sign(sides) : axis == b ? at + sign(sides >> 1) : at;
        }));
  }
}

/// The index so far away along an axis.
template <int N, class I>
Val<TreeIndex<N, I>> moved_along(const Val<TreeIndex<N, I>>& from, const I32& axis,
                                 const Val<I>& by) {
  return index_from<N, I>(
      [&](int k) { return along<N, I>(from, k) + select(axis == k, by, Val<I>(0)); });
}
/// Is the neighbour there?
template <int N, class I>
B1 is_there(const Topology<N>& x, const Val<TreeIndex<N, I>>& near) {
  return is_inside<I>(x, near) && is_active(x, near);
}

/// By one.
template <int N, class I>
void step(const Topology<N>& x, bool grows, bool edges, Loc loc) {
  using Near = Val<TreeIndex<N, I>>;
  const auto dilate = [](bool with_edges) {
    return Kernel{[with_edges](Topology<N> u) {
                    for (auto i : u.template indices<I>())
                      each_neighbour<N, I>(i, with_edges, [&](const Near& near) {
                        If(is_inside<I>(u, near)) { activate(u, near); }
                      });
                  },
                  modes("dilating a tree")};
  };
  const auto erode = [](bool with_edges) {
    return Kernel{[with_edges](Topology<N> u) {
                    for (auto i : u.template indices<I>()) {
                      Var<bool> stays = true;
                      each_neighbour<N, I>(i, with_edges, [&](const Near& near) {
                        If(stays) { stays = is_there<N, I>(u, near); }
                      });
                      If(!stays) { deactivate(u, i); }
                    }
                  },
                  modes("eroding a tree")};
  };
  grows ? kernel_of(dilate, edges)(x, loc) : kernel_of(erode, edges)(x, loc);
}

/// By `radius` along an axis: what this does axis after axis makes cubes.
template <int N, class I>
void step_along(const Topology<N>& x, bool grows, int axis, int radius, Loc loc) {
  const auto dilate = [](bool) {
    return Kernel{[](Topology<N> u, I32 which, I32 most) {
                    for (auto i : u.template indices<I>())
                      for (auto d : range(-most, most + 1)) {
                        const Val<TreeIndex<N, I>> near = moved_along<N, I>(i, which, cast<I>(d));
                        If(is_inside<I>(u, near)) { activate(u, near); }
                      }
                  },
                  modes("dilating a tree")};
  };
  const auto erode = [](bool) {
    return Kernel{[](Topology<N> u, I32 which, I32 most) {
                    for (auto i : u.template indices<I>()) {
                      Var<bool> stays = true;
                      for (auto d : range(-most, most + 1))
                        stays = stays && is_there<N, I>(u, moved_along<N, I>(i, which, cast<I>(d)));
                      If(!stays) { deactivate(u, i); }
                    }
                  },
                  modes("eroding a tree")};
  };
  grows ? kernel_of(dilate)(x, axis, radius, loc) : kernel_of(erode)(x, axis, radius, loc);
}

template <int N, class I>
void change(TreeData& tree, bool grows, int radius, Neighbours neighbours, Loc loc) {
  const Topology<N> x = topology<N>(tree);
  if (neighbours == Neighbours::vertices)
    for (int axis = 0; axis < N; axis++) step_along<N, I>(x, grows, axis, radius, loc);
  else
    for (int k = 0; k < radius; k++) step<N, I>(x, grows, neighbours == Neighbours::edges, loc);
}

void change(const char* name, TreeData& tree, bool grows, int radius, Neighbours neighbours,
            Loc loc) {
  const Operation operation(name, tree, loc);
  expect_no_lists(name, tree, loc);
  if (radius < 0)
    throw Error(
        loc, std::string(name) + " by a radius of " + std::to_string(radius) + "; it is 0 or more");
  if (radius == 0) return;
  const auto by_elements = [&](TreeData& one) {
    with_indices(one, one, [&]<int N, class I>(Rank<N>, I) {
      change<N, I>(one, grows, radius, neighbours, loc);
    });
  };
  if (tree.pools.back().unit == 1) return by_elements(tree);
  const auto elements = copy_by_elements(tree, loc);
  by_elements(*elements);
  grows ? activate_all(tree, *elements, loc) : keep_active(tree, *elements, loc);
}

}  // namespace

void dilate(TreeData& tree, int radius, Neighbours neighbours, Loc loc) {
  change("dilate", tree, true, radius, neighbours, loc);
}
void erode(TreeData& tree, int radius, Neighbours neighbours, Loc loc) {
  change("erode", tree, false, radius, neighbours, loc);
}

}  // namespace quern::detail
