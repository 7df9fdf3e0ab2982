#pragma once
// Decompositions of 2×2 and 3×3 matrices, f32 and f64, on the host and on the device: singular
// values, polar, and eigenvalues of symmetric ones. Every matrix takes the same steps, without a
// branch, so that they run side by side in vectors and on GPUs. A NaN gives NaNs.
//
// Jacobi's method in its one-sided form (Hestenes 1958) for singular values and its classical
// form for eigenvalues, with a fixed number of sweeps; Golub & Van Loan, Matrix Computations, 4th
// ed., 8.5 and 8.6. Residuals are a few units in the last place of the largest element.
#include "quern/math/local.h"

namespace quern {

/// a = u · diag(s) · transpose(v), u and v orthogonal; for `auto [u, s, v] = svd(a)`.
template <class M, class V>
struct Svd {
  using parts = detail::Types<detail::elem_t<M>, detail::elem_t<V>, detail::elem_t<M>>;
  M u;
  V s;
  M v;
};
/// a = r · s, r orthogonal, s symmetric and positive semidefinite.
template <class M>
struct Polar {
  using parts = detail::Types<detail::elem_t<M>, detail::elem_t<M>>;
  M r, s;
};
/// a · vectors = vectors · diag(values), vectors orthogonal.
template <class M, class V>
struct SymmetricEigen {
  using parts = detail::Types<detail::elem_t<V>, detail::elem_t<M>>;
  V values;
  M vectors;
};

namespace detail {

template <class M>
struct Decomposable {
  static constexpr int n = Traits<elem_t<M>>::rows;
  static_assert(n == 2 || n == 3, "quern: decompositions take matrices of 2×2 and 3×3");
  static_assert(Takes<elem_t<M>, true>::ok);
  static constexpr bool ok = true;
};

/// A rotation by its sine and the tangent of half its angle: a small one then errs by little
/// (Rutishauser, Numerische Mathematik 9, 1966).
template <class S>
struct Rotation {
  S sine, half;
};
/// The smaller of the two that make γ vanish between columns (or rows) of squares α and β.
template <class S>
Rotation<S> jacobi(const S& alpha, const S& beta, const S& gamma) {
  S d = beta - alpha, twice = 2 * gamma;
  S length = abs(d) + sqrt(d * d + twice * twice);
  // The squares may vanish where the numbers do not.
  S t = select(gamma == 0, 0 * gamma, select(d < 0, -twice, twice) / max(length, abs(twice)));
  S cosine = 1 / sqrt(1 + t * t);
  S sine = cosine * t;
  return {sine, sine / (1 + cosine)};
}

/// The state of a decomposition: columns of a matrix and of the product of all rotations.
template <int N, class S>
struct JacobiState {
  local_t<S> a[N][N];  ///< a[r][c]
  local_t<S> v[N][N];
  S scale;  ///< the largest element, which the others were divided by

  template <class M>
  explicit JacobiState(const M& m) : scale(largest(m)) {
    for (int r = 0; r < N; r++)
      for (int c = 0; c < N; c++) {
        a[r][c] = m(r, c) / scale;
        v[r][c] = elem_t<S>(r == c);
      }
  }
  template <class M>
  static S largest(const M& m) {
    local_t<S> most = abs(m(0, 0));
    for (int k = 1; k < N * N; k++) most = max(now<S>(most), abs(m(k / N, k % N)));
    S found = now<S>(most);
    return select(found > 0, found, 0 * found + 1);
  }

  S at(int r, int c) const { return now<S>(a[r][c]); }
  S in_v(int r, int c) const { return now<S>(v[r][c]); }
  S dot_columns(int p, int q) const {
    return sum_of<N>([&](int r) { return at(r, p) * at(r, q); });
  }
  static void rotate(local_t<S>& x, local_t<S>& y, const Rotation<S>& j) {
    S p = now<S>(x), q = now<S>(y);
    x = p - j.sine * (q + j.half * p);
    y = q + j.sine * (p - j.half * q);
  }
  void rotate_columns(int p, int q, const Rotation<S>& j) {
    for (int r = 0; r < N; r++) {
      rotate(a[r][p], a[r][q], j);
      rotate(v[r][p], v[r][q], j);
    }
  }
  /// Exchanges two columns where `c` holds.
  template <class B>
  void exchange(const B& c, int p, int q) {
    for (int r = 0; r < N; r++) {
      detail::exchange<S>(c, a[r][p], a[r][q]);
      detail::exchange<S>(c, v[r][p], v[r][q]);
    }
  }
  auto column(int c) const {
    return vector_from<N>([&](int r) { return at(r, c); });
  }
  auto rotations() const {
    return matrix_from<N, N>([&](int r, int c) { return in_v(r, c); });
  }
};

/// Calls f for each pair of columns, sweep after sweep: four reach rounding in f32, five in f64.
template <int N, class T, class F>
void sweeps(F f) {
  constexpr int count = sizeof(T) == 4 ? 4 : 5;
  for (int sweep = 0; sweep < (N == 2 ? 2 : count); sweep++)
    for (int p = 0; p < N; p++)
      for (int q = p + 1; q < N; q++) f(p, q);
}

/// The left singular vectors of columns of falling length, orthogonal, and those lengths: of each
/// column what the ones before have left, twice (Gram & Schmidt; Parlett's "twice is enough").
template <int N, class S>
auto left_vectors(const JacobiState<N, S>& state) {
  using T = elem_t<S>;
  constexpr T rounding = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);
  auto unit = [](const auto& v, const S& length) {
    return v / select(length > 0, length, 1 + length);
  };
  auto b0 = state.column(0);
  S s0 = length(b0);
  auto axis = vector_from<N>([&](int k) { return 0 * s0 + T(k == 0); });
  auto u0 = select(s0 > 0, unit(b0, s0), axis);
  auto b1 = state.column(1);
  if constexpr (N == 2) {
    auto across = vector_from<2>([&](int k) { return k == 0 ? -u0[1] : u0[0]; });
    S s1 = dot(b1, across);
    auto u1 = select(s1 < 0, -across, across);
    auto u = matrix_from<2, 2>([&](int r, int c) { return c == 0 ? S(u0[r]) : S(u1[r]); });
    return Svd<decltype(u), decltype(u0)>{
        u, vector_from<2>([&](int k) { return k == 0 ? s0 : S(min(abs(s1), s0)); }), u};
  } else {
    auto rest = b1 - dot(b1, u0) * u0;
    S left = length(rest);
    auto first = unit(rest, left);
    auto again = first - dot(first, u0) * u0;
    // Where nothing is left: any direction across, from the axis that u0 is farthest from.
    auto small_x = abs(u0[0]) <= min(abs(u0[1]), abs(u0[2]));
    auto small_y = abs(u0[1]) <= abs(u0[2]);
    auto far = vector_from<3>([&](int k) {
      S x = select(small_x, T(k == 0) + 0 * s0,
                   select(small_y, T(k == 1) + 0 * s0, T(k == 2) + 0 * s0));
      return x;
    });
    auto other = cross(u0, far);
    auto across = select(left > rounding, again, other);
    auto u1 = across / length(across);
    S s1 = dot(b1, u1);
    auto last = cross(u0, u1);
    S s2 = dot(state.column(2), last);
    auto u2 = select(s2 < 0, -last, last);
    auto v1 = select(s1 < 0, -u1, u1);
    auto u = matrix_from<3, 3>([&](int r, int c) {
      return c == 0 ? S(u0[r]) : c == 1 ? S(v1[r]) : S(u2[r]);
    });
    S second = min(abs(s1), s0);  // rounding may exchange equal ones
    auto s = vector_from<3>([&](int k) {
      return k == 0 ? s0 : k == 1 ? second : S(min(abs(s2), second));
    });
    return Svd<decltype(u), decltype(s)>{u, s, u};
  }
}

/// Singular values in falling order, none negative.
template <class M>
auto jacobi_svd(const M& a) {
  using S = element_t<M>;
  constexpr int n = Decomposable<M>::n;
  JacobiState<n, S> state(a);
  sweeps<n, elem_t<S>>([&](int p, int q) {
    auto j = jacobi<S>(state.dot_columns(p, p), state.dot_columns(q, q), state.dot_columns(p, q));
    state.rotate_columns(p, q, j);
  });
  auto order = [&](int p, int q) {
    state.exchange(state.dot_columns(p, p) < state.dot_columns(q, q), p, q);
  };
  order(0, 1);
  if constexpr (n == 3) {
    order(0, 2);
    order(1, 2);
  }
  auto left = left_vectors<n, S>(state);
  auto s = left.s * state.scale;
  auto v = state.rotations();
  return Svd<decltype(v), decltype(s)>{left.u, s, v};
}

template <class M, class V>
auto polar_of(const Svd<M, V>& by) {
  constexpr int n = Decomposable<M>::n;
  auto r = by.u * transpose(by.v);
  auto stretch = matrix_from<n, n>([&](int i, int j) {
    return sum_of<n>([&](int k) { return by.v(i, k) * by.s[k] * by.v(j, k); });
  });
  return Polar<decltype(r)>{r, stretch};
}

/// Of the upper triangle, eigenvalues in rising order.
template <class M>
auto jacobi_eigen(const M& m) {
  using S = element_t<M>;
  constexpr int n = Decomposable<M>::n;
  auto symmetric =
      matrix_from<n, n>([&](int r, int c) { return r <= c ? S(m(r, c)) : S(m(c, r)); });
  JacobiState<n, S> state(symmetric);
  sweeps<n, elem_t<S>>([&](int p, int q) {
    auto j = jacobi<S>(state.at(p, p), state.at(q, q), state.at(p, q));
    state.rotate_columns(p, q, j);                                              // a ← a J, v ← v J
    for (int c = 0; c < n; c++) state.rotate(state.a[p][c], state.a[q][c], j);  // a ← Jᵀ a
  });
  auto order = [&](int p, int q) {
    // Eigenvalues stand on the diagonal: rows go along with columns.
    auto swap = state.at(p, p) > state.at(q, q);
    state.exchange(swap, p, q);
    for (int c = 0; c < n; c++) exchange<S>(swap, state.a[p][c], state.a[q][c]);
  };
  order(0, 1);
  if constexpr (n == 3) {
    order(1, 2);
    order(0, 1);
  }
  auto values = vector_from<n>([&](int k) { return state.at(k, k) * state.scale; });
  auto vectors = state.rotations();
  return SymmetricEigen<decltype(vectors), decltype(values)>{values, vectors};
}

/// m with its last column multiplied by f.
template <class M, class S>
auto scale_last(const M& m, const S& f) {
  constexpr int n = Traits<elem_t<M>>::rows;
  return matrix_from<n, n>([&](int r, int c) { return c + 1 == n ? S(m(r, c) * f) : S(m(r, c)); });
}

}  // namespace detail

namespace lang {

/// Singular values in falling order, none negative; u and v may be reflections.
template <detail::SquareLike M>
auto svd(M&& a, Loc l = Loc::here()) {
  static_assert(detail::Decomposable<M>::ok);
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  return detail::by_rule("svd", l, [](const auto& m) { return detail::jacobi_svd(m); }, a);
}

/// The same with rotations u and v; the last singular value has the sign of a's determinant.
template <detail::SquareLike M>
auto svd_rotations(M&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  using S = detail::element_t<M>;
  constexpr int n = detail::Decomposable<M>::n;
  auto [u, s, v] = svd(a, l);
  auto sign = [](const auto& d) { return select(d < 0, 0 * d - 1, 0 * d + 1); };
  S in_u = sign(determinant(u)), in_v = sign(determinant(v));
  const auto& values = s;
  auto signed_values = detail::vector_from<n>(
      [&](int k) { return k + 1 == n ? S(values[k] * in_u * in_v) : S(values[k]); });
  auto left = detail::scale_last(u, in_u), right = detail::scale_last(v, in_v);
  return Svd<decltype(left), decltype(signed_values)>{left, signed_values, right};
}

/// a = r · s; r is a reflection where a's determinant is negative.
template <detail::SquareLike M>
auto polar(M&& a, Loc l = Loc::here()) {
  static_assert(detail::Decomposable<M>::ok);
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  return detail::by_rule("polar", l, [](const auto& m) { return detail::polar_of(svd(m)); }, a);
}

/// Eigenvalues in rising order, and eigenvectors as columns, of a symmetric matrix: of `a` the
/// upper triangle is read.
template <detail::SquareLike M>
auto sym_eig(M&& a, Loc l = Loc::here()) {
  static_assert(detail::Decomposable<M>::ok);
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  return detail::by_rule("sym_eig", l, [](const auto& m) { return detail::jacobi_eigen(m); }, a);
}

}  // namespace lang

using lang::polar;
using lang::svd;
using lang::svd_rotations;
using lang::sym_eig;

}  // namespace quern
