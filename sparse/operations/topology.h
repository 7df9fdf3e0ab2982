#pragma once
// What the operations of the host on trees share. Each is a kernel of the language over a field that
// has no elements, so that it is told of what is active alone, and never how the tree's levels lie.
#include "quern/runtime/observer.h"
#include "quern/sparse/kernels.h"
#include "sparse/parts.h"

namespace quern::detail {

/// A field on the tree whose elements have no memory: it is asked what is active, and says it.
template <int N>
using Topology = Field<uint8_t, N>;

std::shared_ptr<Storage> topology_of(TreeData& tree);
template <int N>
Topology<N> topology(TreeData& tree) {
  auto object = std::make_unique<FieldObject>();
  object->type = Topology<N>::type();
  object->storage = topology_of(tree);
  return Topology<N>(Ref<FieldObject>(object.release()));
}

/// Begins an operation called `name`: throws Error inside a recording and once the process is
/// ending. What it launches meanwhile is the library's own.
class Operation {
 public:
  Operation(const char* name, TreeData& tree, Loc loc);

 private:
  runtime::LaunchCall call_{runtime::LaunchCall::upkeep};
};
/// Throws Error where the trees, or tree and field, are on different devices.
void expect_same_device(const char* name, const TreeData& tree, const runtime::Device& other,
                        Loc loc);

/// Calls `f` with the tree's number of axes as a constant.
template <class F>
auto with_rank(const TreeData& tree, F&& f) {
  switch (tree.rank) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 3: return f(std::integral_constant<int, 3>());
    default: return f(std::integral_constant<int, 4>());
  }
}

template <int N>
using Rank = std::integral_constant<int, N>;
/// Calls `f` with the number of axes, and a value of the type that indices have in kernels about both
/// trees.
template <class F>
decltype(auto) with_indices(const TreeData& tree, const TreeData& other, F&& f) {
  return with_rank(tree, [&]<int N>(Rank<N> n) {
    return with_index(tree.wide || other.wide, [&](auto i) { return f(n, i); });
  });
}

/// A field of the caller's.
template <class T, int N = 1>
Field<T, N> shared(FieldObject* object) {
  retain(object);
  return Field<T, N>(Ref<FieldObject>(object));
}

// ---- parts of operations
/// Throws Error for a field that build_from cannot be given, and for elements of no size.
void expect_input(TreeData& tree, FieldObject* field, Loc loc);
void expect_size(float size, Loc loc);
/// Throws Error where the tree has no element for one that is active in the other. May wait.
void expect_inside(const char* name, TreeData& tree, TreeData& other, Loc loc);
/// What is active in the other, for which the tree has elements, becomes active.
void activate_all(TreeData& tree, TreeData& other, Loc loc);
/// What is active in the tree, and not in the other, ends.
void keep_active(TreeData& tree, TreeData& other, Loc loc);
/// A tree with the same active elements, each of which is active or not by itself.
std::shared_ptr<TreeData> copy_by_elements(TreeData& tree, Loc loc);

}  // namespace quern::detail
