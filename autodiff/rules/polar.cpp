// The derivative of the polar decomposition a = r · s.
//
// ṙ = r·Ω with antisymmetric Ω, and with M = rᵀ ȧ the antisymmetric part of ȧ = ṙ·s + r·ṡ is
// Sylvester's equation Ω·s + s·Ω = M - Mᵀ. With Ω = skew(ω) its left side is skew(K·ω),
// K = trace(s) - s, whose eigenvalues are the sums of two singular values: it has a solution where
// none of these is 0, whether they are equal or not. (In the plane K is trace(s).) It is solved in
// closed form, which is smooth in s, so that second derivatives are right too.
#include "autodiff/rules/library.h"
#include "autodiff/rules/parts.h"
#include "quern/decompose.h"

namespace quern::autodiff {

namespace {

/// K⁻¹ w; K's pseudoinverse where the matrix has rank one, 0 where it is 0.
template <class T>
Val<T> solution(const Square<T, 2>& s, const Val<T>& w) {
  return ratio<T>(w, trace(s));
}
template <class T>
Val<Vec<T, 3>> solution(const Square<T, 3>& s, const Val<Vec<T, 3>>& w) {
  // Over the trace the eigenvalues are between 0 and 1, and their sum is 2.
  const Val<T> size = trace(s);
  const Square<T, 3> k =
      detail::matrix_from<3, 3>([&](int r, int c) { return T(r == c) - ratio<T>(s(r, c), size); });
  const Square<T, 3> adjugate = detail::matrix_from<3, 3>([&](int c, int r) {
    return detail::minor2(k, (r + 1) % 3, (r + 2) % 3, (c + 1) % 3, (c + 2) % 3);
  });
  const Val<T> determinant =
      k(0, 0) * adjugate(0, 0) + k(0, 1) * adjugate(1, 0) + k(0, 2) * adjugate(2, 0);
  const Val<bool> is_singular = determinant == T(0);
  const Val<Vec<T, 3>> inside = adjugate * w, outside = k * w;  // then k is a projection
  return detail::vector_from<3>([&](int n) {
    const Val<T> solved = select(is_singular, outside[n], ratio<T>(inside[n], determinant));
    return ratio<T>(solved, size);
  });
}

/// ω of skew(ω) = m - mᵀ.
template <class T>
Val<T> turn(const Square<T, 2>& m) {
  return m(1, 0) - m(0, 1);
}
template <class T>
Val<Vec<T, 3>> turn(const Square<T, 3>& m) {
  return detail::vector_from<3>([&](int n) {
    const int r = (n + 2) % 3, c = (n + 1) % 3;
    return m(r, c) - m(c, r);
  });
}

template <class T>
Square<T, 2> skewed(const Val<T>& w) {
  return antisymmetric<T, 2>([&](int, int) { return -w; });
}
template <class T>
Square<T, 3> skewed(const Val<Vec<T, 3>>& w) {
  return antisymmetric<T, 3>(
      [&](int i, int j) { return j == i + 1 ? -w[3 - i - j] : Val<T>(w[1]); });
}

template <class T, int N>
Square<T, N> symmetric_part(const Square<T, N>& m) {
  return detail::matrix_from<N, N>([&](int r, int c) { return T(0.5) * (m(r, c) + m(c, r)); });
}

template <class T, int N>
auto push(Square<T, N>, Square<T, N> r, Square<T, N> s, Square<T, N> da) {
  const Square<T, N> m = transpose(r) * da;
  const Square<T, N> turns = skewed<T>(solution<T>(s, turn<T>(m)));
  const Square<T, N> dr = r * turns, ds = symmetric_part<T, N>(m - turns * s);
  return lang::result(dr, ds);
}

template <class T, int N>
Square<T, N> pull(Square<T, N>, Square<T, N> r, Square<T, N> s, Square<T, N> dr, Square<T, N> ds) {
  const Square<T, N> stretch = symmetric_part<T, N>(ds);
  const Square<T, N> of_turns = transpose(r) * dr - stretch * s;
  return r * (stretch + skewed<T>(solution<T>(s, turn<T>(of_turns))));
}

}  // namespace

RecordedRule polar_rule(const ir::Function& f, Direction direction) {
  return for_decomposed(f, [&]<class T, int N>() -> RecordedRule {
    return record(direction, push<T, N>, pull<T, N>);
  });
}

}  // namespace quern::autodiff
