#pragma once
// What the kernels that list a tree's cells share.
#include "sparse/parts.h"

namespace quern::detail {

/// Where a cell begins: T is int, or int64_t on a wide tree.
template <class T, int N>
using Place = std::conditional_t<N == 1, T, Vec<T, N == 1 ? 2 : N>>;

/// How many elements a child of the pool has along each axis.
std::vector<int64_t> size_of_child(const TreeData& tree, size_t pool);

/// Puts into the current stream what makes the list of a hashed root's children anew, sorted by where
/// they are. Waits. In entry_lists.cpp.
void list_entries(TreeData& tree, Loc loc);

}  // namespace quern::detail
