// The derivative of eigenvalues l and eigenvectors v of a symmetric matrix, of which the upper
// triangle is read.
//
// With P = vᵀ ȧ v: l̇ is the diagonal of P, and v̇ = v·Ω with Ω_ij = P_ij / (l_j - l_i) (Giles, An
// extended collection of matrix derivative results for forward and reverse mode algorithmic
// differentiation, 2008, section 3.1).
#include "autodiff/rules/library.h"
#include "autodiff/rules/parts.h"
#include "quern/decompose.h"

namespace quern::autodiff {

namespace {

template <class T, int N>
using Values = Val<Vec<T, N>>;

/// x / (l_j - l_i)
template <class T, int N>
Val<T> between(const Val<T>& x, const Values<T, N>& l, int i, int j) {
  const Val<T> most = max(abs(l[0]), abs(l[N - 1]));
  return over_gap<T>(x, l[i], l[j], most);
}

template <class T, int N>
auto push(Square<T, N>, Values<T, N> l, Square<T, N> v, Square<T, N> da) {
  const Square<T, N> symmetric =
      detail::matrix_from<N, N>([&](int r, int c) { return r <= c ? da(r, c) : da(c, r); });
  const Square<T, N> p = transpose(v) * symmetric * v;
  const Values<T, N> dl = detail::vector_from<N>([&](int k) { return p(k, k); });
  const Square<T, N> dv =
      v * antisymmetric<T, N>([&](int i, int j) { return between<T, N>(p(i, j), l, i, j); });
  return lang::result(dl, dv);
}

template <class T, int N>
Square<T, N> pull(Square<T, N>, Values<T, N> l, Square<T, N> v, Values<T, N> dl, Square<T, N> dv) {
  const Square<T, N> q = transpose(v) * dv;
  const Square<T, N> p = detail::matrix_from<N, N>([&](int r, int c) {
    if (r == c) return Val<T>(dl[r]);
    const int i = std::min(r, c), j = std::max(r, c);
    return T(0.5) * between<T, N>(q(i, j) - q(j, i), l, i, j);
  });
  const Square<T, N> symmetric = v * p * transpose(v);
  return detail::matrix_from<N, N>([&](int r, int c) {
    if (r > c) return Val<T>(T(0));
    return r == c ? Val<T>(symmetric(r, c)) : symmetric(r, c) + symmetric(c, r);
  });
}

}  // namespace

RecordedRule eigen_rule(const ir::Function& f, Direction direction) {
  return for_decomposed(f, [&]<class T, int N>() -> RecordedRule {
    return record(direction, push<T, N>, pull<T, N>);
  });
}

}  // namespace quern::autodiff
