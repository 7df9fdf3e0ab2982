#pragma once
// The types of tangents and adjoints.
#include "quern/types/types.h"

namespace quern {
namespace detail {
template <class T>
struct DerivativeOf {
  static consteval bool has_halves() {
    for (Scalar s : Traits<T>::scalars().v)
      if (s == Scalar::f16) return true;
    return false;
  }
  static_assert(!has_halves(), "quern: a structure that holds a half has no type for derivatives");
  using type = T;
};
template <>
struct DerivativeOf<half> {
  using type = float;
};
template <int N>
struct DerivativeOf<Vec<half, N>> {
  using type = Vec<float, N>;
};
template <int R, int C>
struct DerivativeOf<Mat<half, R, C>> {
  using type = Mat<float, R, C>;
};
}  // namespace detail

/// Of a T's tangent and adjoint: T, with float for half, as sums are kept in it. What is no float in T
/// stays 0.
template <class T>
using derivative_t = typename detail::DerivativeOf<T>::type;
}  // namespace quern
