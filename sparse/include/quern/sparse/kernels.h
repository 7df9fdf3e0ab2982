#pragma once
// What kernels of operations on trees are written with.
#include "quern/quern.h"

namespace quern::detail {

/// A number for each axis; of one axis the number.
template <class T, int N>
using PerAxis = std::conditional_t<N == 1, T, Vec<T, N == 1 ? 2 : N>>;
/// An index: of int64_t on trees that are wide. On others last ones may be past 2^31: 32 bits keep them
/// modulo 2^32, and what is counted from a tree's first index fits.
template <int N, class I = int>
using TreeIndex = PerAxis<I, N>;

/// The index along an axis.
template <int N, class I = int>
Val<I> along(const Val<TreeIndex<N, I>>& index, int axis) {
  if constexpr (N == 1)
    return index;
  else
    return index[axis];
}
/// The index made of one number for each axis.
template <int N, class I = int, class F>
Val<TreeIndex<N, I>> index_from(F&& number) {
  if constexpr (N == 1) {
    return number(0);
  } else {
    Var<TreeIndex<N, I>> made;
    for (int axis = 0; axis < N; axis++) made[axis] = number(axis);
    return made;
  }
}
/// Is there an element at the index?
template <class I = int, class T, int N>
Val<bool> is_inside(const Field<T, N>& x, const Val<TreeIndex<N, I>>& index) {
  Var<bool> inside = true;
  for (int axis = 0; axis < N; axis++) {
    Val<I> at = along<N, I>(index, axis) - x.template first<I>(axis);
    inside = inside & (at >= I(0)) & (at < x.template dim<I>(axis));
  }
  return inside;
}

/// The index, at twice the resolution, of one of the 2^N elements that one consists of, in row-major
/// order.
template <int N, class I = int>
Val<TreeIndex<N, I>> child_of(const Val<TreeIndex<N, I>>& index, const Val<int>& number) {
  return index_from<N, I>([&](int axis) {
    return along<N, I>(index, axis) * I(2) + lang::cast<I>(number >> (N - 1 - axis) & 1);
  });
}
/// The index, at half the resolution, of the element that one belongs to.
template <int N, class I = int>
Val<TreeIndex<N, I>> parent_of(const Val<TreeIndex<N, int64_t>>& index) {
  return index_from<N, I>(
      [&](int axis) { return lang::cast<I>(along<N, int64_t>(index, axis) >> 1); });
}

/// Calls `f` with a value of the type that indices have.
template <class F>
decltype(auto) with_index(bool is_wide, F&& f) {
  return is_wide ? f(int64_t()) : f(int());
}

}  // namespace quern::detail
