#pragma once
// What several of the library's rules are made of.
#include "quern/matrix.h"
#include "quern/types/derivative.h"

namespace quern::autodiff {

template <class T, int N>
using Square = Val<Mat<T, N, N>>;

/// Values of the type of tangents and adjoints.
template <class X>
using Wide = Val<derivative_t<detail::elem_t<X>>>;
template <class X>
Wide<X> wide(const X& x) {
  if constexpr (std::is_same_v<X, Wide<X>>)
    return x;
  else
    return lang::cast<detail::scalar_t<derivative_t<detail::elem_t<X>>>>(x);
}

/// x / y, and 0 where y is 0 or `none` holds: also in its derivatives.
template <class T>
Val<T> ratio(const Val<T>& x, const Val<T>& y, const Val<bool>& none) {
  const Val<T> divisor = select(none, T(1), y);
  return select(none, T(0), x / divisor);
}
template <class T>
Val<T> ratio(const Val<T>& x, const Val<T>& y) {
  return ratio<T>(x, y, y == T(0));
}

/// x / (b - a), and 0 where a and b, of which the largest is `most`, are equal within rounding, so
/// that the quotient would say nothing.
template <class T>
Val<T> over_gap(const Val<T>& x, const Val<T>& a, const Val<T>& b, const Val<T>& most) {
  constexpr T rounding = sizeof(T) == 4 ? T(0x1p-20) : T(0x1p-49);
  const Val<T> gap = b - a;
  return ratio<T>(x, gap, abs(gap) <= rounding * most);
}

/// The matrix of f(i, j) above the diagonal, and -f(i, j) at (j, i).
template <class T, int N, class F>
Square<T, N> antisymmetric(F f) {
  return detail::matrix_from<N, N>([&](int r, int c) {
    if (r == c) return Val<T>(T(0));
    return r < c ? Val<T>(f(r, c)) : -f(c, r);
  });
}

}  // namespace quern::autodiff
