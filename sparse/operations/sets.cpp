// Trees as sets of what is active: union, intersection, difference, equality, copies.
#include "quern/algorithms.h"
#include "sparse/operations/topology.h"

namespace quern::detail {

namespace {

using namespace lang;

/// Elements of `from` that `of` has not: that are not active, or as `outside` says have no index.
template <class I, int N>
int64_t count_missing(TreeData& from, TreeData& of, bool outside, Loc loc) {
  return kernel_of(
             [](bool by_index) {
               return Kernel{[by_index](Topology<N> x, Topology<N> y) -> I64 {
                               Var<int64_t> missing = 0;
                               for (auto i : x.template indices<I>()) {
                                 B1 inside = is_inside<I>(y, i);
                                 if (by_index)
                                   missing += cast<int64_t>(!inside);
                                 else
                                   missing += cast<int64_t>(!(inside && is_active(y, i)));
                               }
                               return missing;
                             },
                             modes("comparing trees")};
             },
             outside)(topology<N>(from), topology<N>(of), loc)
      .value(loc);
}

/// Has every index of `from` an element in `to`?
bool contains(const TreeData& to, const TreeData& from) {
  for (size_t axis = 0; axis < to.shape.size(); axis++)
    if (from.firsts[axis] < to.firsts[axis] ||
        from.firsts[axis] + from.shape[axis] > to.firsts[axis] + to.shape[axis])
      return false;
  return true;
}

template <class I, int N>
void activate_all(TreeData& tree, TreeData& other, Loc loc) {
  kernel_of([](bool) {
    return Kernel{[](Topology<N> x, Topology<N> y) {
                    for (auto i : y.template indices<I>()) activate(x, i);
                  },
                  modes("merging trees")};
  })(topology<N>(tree), topology<N>(other), loc);
}

/// Ends what is active in `tree` and is so in `other`, or is not.
template <class I, int N>
void end_where(const Topology<N>& tree, const Topology<N>& other, bool is_there, Loc loc) {
  kernel_of(
      [](bool there) {
        return Kernel{[there](Topology<N> x, Topology<N> y) {
                        for (auto i : x.template indices<I>()) {
                          B1 found = is_inside<I>(y, i) && is_active(y, i);
                          If(found == there) { deactivate(x, i); }
                        }
                      },
                      modes("comparing trees")};
      },
      is_there)(tree, other, loc);
}

}  // namespace

void expect_inside(const char* name, TreeData& tree, TreeData& other, Loc loc) {
  if (contains(tree, other)) return;
  const int64_t outside = with_indices(tree, other, [&]<int N, class I>(Rank<N>, I) {
    return count_missing<I, N>(other, tree, true, loc);
  });
  if (outside > 0) refuse_outside(name, tree, outside, "active elements", loc);
}

void activate_all(TreeData& tree, TreeData& other, Loc loc) {
  with_indices(tree, other,
               [&]<int N, class I>(Rank<N>, I) { activate_all<I, N>(tree, other, loc); });
}

void keep_active(TreeData& tree, TreeData& other, Loc loc) {
  with_indices(tree, other, [&]<int N, class I>(Rank<N>, I) {
    end_where<I>(topology<N>(tree), topology<N>(other), false, loc);
  });
}

void end_unmarked(TreeData& tree, TreeData& marks, FieldObject* field, Loc loc) {
  with_indices(tree, marks, [&]<int N, class I>(Rank<N>, I) {
    end_where<I>(Topology<N>(Ref<FieldObject>(topology_beside(tree, field, loc))),
                 Topology<N>(Ref<FieldObject>(topology_beside(marks, field, loc))), false, loc);
  });
}

void merge(TreeData& tree, TreeData& other, Loc loc) {
  const Operation operation("merge", tree, loc);
  expect_same_device("merge", tree, *other.device, loc);
  if (&tree == &other) return;
  expect_inside("merge", tree, other, loc);
  activate_all(tree, other, loc);
}

void intersect(TreeData& tree, TreeData& other, Loc loc) {
  const Operation operation("intersect", tree, loc);
  expect_same_device("intersect", tree, *other.device, loc);
  keep_active(tree, other, loc);
}

void subtract(TreeData& tree, TreeData& other, Loc loc) {
  const Operation operation("subtract", tree, loc);
  expect_same_device("subtract", tree, *other.device, loc);
  with_indices(tree, other, [&]<int N, class I>(Rank<N>, I) {
    end_where<I>(topology<N>(tree), topology<N>(other), true, loc);
  });
}

bool same_activity(TreeData& a, TreeData& b, Loc loc) {
  const Operation operation("same_activity", a, loc);
  expect_same_device("same_activity", a, *b.device, loc);
  return with_indices(a, b, [&]<int N, class I>(Rank<N>, I) {
    return count_missing<I, N>(a, b, false, loc) == 0 && count_missing<I, N>(b, a, false, loc) == 0;
  });
}

std::shared_ptr<TreeData> empty_like(TreeData& tree, Loc loc) {
  return make_tree(tree.device, tree.rank, tree.levels, tree.shape, tree.firsts, 0, loc);
}

std::shared_ptr<TreeData> copy_tree(TreeData& tree, Loc loc) {
  const Operation operation("copy", tree, loc);
  auto made = empty_like(tree, loc);
  activate_all(*made, tree, loc);
  return made;
}

std::shared_ptr<TreeData> copy_by_elements(TreeData& tree, Loc loc) {
  std::vector<TreeLevel> levels = tree.levels;
  if (levels.back().kind == TreeLevel::dense) levels.back().kind = TreeLevel::bitmasked;
  auto made = make_tree(tree.device, tree.rank, levels, tree.shape, tree.firsts, 0, loc);
  activate_all(*made, tree, loc);
  return made;
}

}  // namespace quern::detail
