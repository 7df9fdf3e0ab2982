#pragma once
// More of small vectors and matrices, on the host and on the device; not part of quern.h: norms,
// diagonals, the matrix of a cross product, linear systems.
#include "quern/math/local.h"

namespace quern {
namespace detail {

/// The largest of f(0), f(1) …; a NaN may be passed over.
template <int N, class F>
constexpr auto largest_of(F f) {
  if constexpr (N == 1)
    return f(0);
  else
    return max(largest_of<N - 1>(f), f(N - 1));
}

/// Number (r, c) of a matrix, or component r of a vector, which is one column.
template <class B>
constexpr auto entry(const B& b, int r, int c) {
  if constexpr (is_vector<elem_t<B>>)
    return static_cast<void>(c), element_t<B>(b[r]);
  else
    return element_t<B>(b(r, c));
}

/// Gaussian elimination of [a | b] with S its numbers; the rows of the solution are left in b.
template <int N, int M, class S>
struct Elimination {
  local_t<S> a[N][N], b[N][M];

  template <class P, class Q>
  Elimination(const P& p, const Q& q) {
    for (int r = 0; r < N; r++) {
      for (int c = 0; c < N; c++) a[r][c] = p(r, c);
      for (int c = 0; c < M; c++) b[r][c] = entry(q, r, c);
    }
    for (int c = 0; c < N; c++) {
      for (int r = c + 1; r < N; r++) put_larger_first(c, r);
      for (int r = c + 1; r < N; r++) eliminate(c, r);
    }
    for (int r = N - 1; r >= 0; r--) substitute(r);
  }
  S solution(int r, int c) const { return now<S>(b[r][c]); }

 private:
  /// Brings the pivot to row c: the largest of its column, from there down.
  void put_larger_first(int c, int r) {
    auto swap = abs(now<S>(a[r][c])) > abs(now<S>(a[c][c]));
    for (int k = c; k < N; k++) exchange<S>(swap, a[c][k], a[r][k]);
    for (int k = 0; k < M; k++) exchange<S>(swap, b[c][k], b[r][k]);
  }
  void eliminate(int c, int r) {
    S factor = now<S>(a[r][c]) / now<S>(a[c][c]);
    for (int k = c + 1; k < N; k++) a[r][k] = now<S>(a[r][k]) - factor * now<S>(a[c][k]);
    for (int k = 0; k < M; k++) b[r][k] = now<S>(b[r][k]) - factor * now<S>(b[c][k]);
  }
  void substitute(int r) {
    for (int k = 0; k < M; k++) {
      for (int c = r + 1; c < N; c++) b[r][k] = now<S>(b[r][k]) - now<S>(a[r][c]) * now<S>(b[c][k]);
      b[r][k] = now<S>(b[r][k]) / now<S>(a[r][r]);
    }
  }
};

template <class A, class B>
auto eliminate(const A& a, const B& b) {
  constexpr int n = Traits<elem_t<A>>::rows, columns = Traits<elem_t<B>>::columns;
  const Elimination<n, columns, element_t<A>> system(a, b);
  if constexpr (is_vector<elem_t<B>>)
    return vector_from<n>([&](int r) { return system.solution(r, 0); });
  else
    return matrix_from<n, columns>([&](int r, int c) { return system.solution(r, c); });
}

}  // namespace detail

namespace lang {

/// Of a vector Σ |v[k]|; of a matrix the largest of its columns'. A NaN may be passed over.
template <class A>
  requires detail::VectorLike<A> || detail::MatrixLike<A>
constexpr auto norm_1(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  using T = detail::Traits<detail::elem_t<A>>;
  auto&& m = detail::once(a);
  return detail::largest_of<T::columns>([&](int c) {
    return detail::sum_of<T::rows>([&](int r) { return abs(detail::entry(m, r, c)); });
  });
}
/// Of a vector the largest |v[k]|; of a matrix the largest sum of a row. A NaN may be passed over.
template <class A>
  requires detail::VectorLike<A> || detail::MatrixLike<A>
constexpr auto norm_inf(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  using T = detail::Traits<detail::elem_t<A>>;
  auto&& m = detail::once(a);
  return detail::largest_of<T::rows>([&](int r) {
    return detail::sum_of<T::columns>([&](int c) { return abs(detail::entry(m, r, c)); });
  });
}
/// √ Σ m(r, c)²: a matrix's length as a vector.
template <detail::MatrixLike M>
constexpr auto norm_frobenius(M&& a, Loc l = Loc::here()) {
  static_assert(detail::Takes<detail::elem_t<M>, true>::ok);
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  using T = detail::Traits<detail::elem_t<M>>;
  auto&& m = detail::once(a);
  return sqrt(detail::sum_of<T::count>([&](int k) {
    auto v = detail::entry(m, k / T::columns, k % T::columns);
    return v * v;
  }));
}

/// The square matrix with this diagonal, zero elsewhere.
template <detail::VectorLike A>
constexpr auto diagonal(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  using S = detail::element_t<A>;
  constexpr int n = detail::count_of<detail::elem_t<A>>;
  auto&& v = detail::once(a);
  return detail::matrix_from<n, n>([&](int r, int c) { return r == c ? S(v[r]) : S(0); });
}
/// The vector m(0, 0), m(1, 1) ….
template <detail::MatrixLike M>
constexpr auto diagonal(M&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  using T = detail::Traits<detail::elem_t<M>>;
  auto&& m = detail::once(a);
  constexpr int n = T::rows < T::columns ? T::rows : T::columns;
  return detail::vector_from<n>([&](int k) { return detail::entry(m, k, k); });
}
/// The matrix of the cross product: skew(v) * w is cross(v, w).
template <detail::VectorLike A>
constexpr auto skew(A&& a, Loc l = Loc::here()) {
  static_assert(detail::count_of<detail::elem_t<A>> == 3, "quern: skew takes three components");
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  using S = detail::element_t<A>;
  auto&& v = detail::once(a);
  return detail::matrix_from<3, 3>([&](int r, int c) {
    if (r == c) return S(0);
    const int k = 3 - r - c;
    return (r + 1) % 3 == c ? S(-v[k]) : S(v[k]);
  });
}

/// x with a · x = b, b a vector or the columns of a matrix. By Gaussian elimination with partial
/// pivoting (Golub & Van Loan, Matrix Computations, 4th ed., 3.4), without a branch: the residual
/// is a few units in the last place of |a| |x|, however badly conditioned a is, which
/// inverse(a) * b does not promise. Not finite where a pivot is zero.
template <detail::SquareLike A, class B>
  requires detail::VectorLike<B> || detail::MatrixLike<B>
auto solve(A&& a, B&& b, Loc l = Loc::here()) {
  using T = detail::scalar_t<detail::elem_t<A>>;
  using R = detail::Traits<detail::elem_t<B>>;
  static_assert(detail::Takes<detail::elem_t<A>, true>::ok);
  static_assert(std::is_same_v<T, typename R::scalar>, "quern: solve takes operands of one type");
  constexpr int n = detail::Traits<detail::elem_t<A>>::rows;
  static_assert(R::rows == n, "quern: the number of components differs");
  [[maybe_unused]] detail::Here<A, B> here(l, std::forward<A>(a), std::forward<B>(b));
  return detail::by_rule(
      "solve", l, [](const auto& m, const auto& x) { return detail::eliminate(m, x); }, a, b);
}

}  // namespace lang

using lang::diagonal;
using lang::norm_1;
using lang::norm_frobenius;
using lang::norm_inf;
using lang::skew;
using lang::solve;

}  // namespace quern
