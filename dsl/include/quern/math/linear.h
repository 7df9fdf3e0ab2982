#pragma once
// Linear algebra of small vectors and matrices. Each function is written once, in components, for
// operands of the host and of the device; a mix of both is recorded.
#include "quern/math/functions.h"
#include "quern/math/rules.h"

namespace quern {
namespace detail {

/// On the host there is nothing to place.
struct NotPlaced {
  template <class... A>
  constexpr explicit NotPlaced(Loc, A&&...) {}
};
/// Places what a function of these operands records at its caller's line.
template <class... A>
using Here = std::conditional_t<(Device<A> || ...), Placed, NotPlaced>;

/// The operand read once: of a variable or element its value.
template <Operand U>
constexpr decltype(auto) once(const U& u) {
  if constexpr (Device<U>)
    return Val<elem_t<U>>(u.quern_ids(Loc{}));
  else
    return (u);
}

/// The vector of f(0), f(1) ….
template <int N, class F>
constexpr auto vector_from(F f) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    using S = bare<decltype(f(0))>;
    const S parts[] = {f(int(K))...};
    if constexpr (Device<S>) {
      using T = Vec<elem_t<S>, N>;
      return Val<T>(Ids<T>{{parts[K].quern_ids(Loc{}).v[0]...}});
    } else {
      return Vec<S, N>(parts[K]...);
    }
  }(std::make_index_sequence<size_t(N)>{});
}
/// The matrix of f(r, c).
template <int R, int C, class F>
constexpr auto matrix_from(F f) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    using S = bare<decltype(f(0, 0))>;
    const S parts[] = {f(int(K) / C, int(K) % C)...};
    if constexpr (Device<S>) {
      using T = Mat<elem_t<S>, R, C>;
      return Val<T>(Ids<T>{{parts[K].quern_ids(Loc{}).v[0]...}});
    } else {
      return Mat<S, R, C>(parts[K]...);
    }
  }(std::make_index_sequence<size_t(R * C)>{});
}
/// f(0) + f(1) + …, from the left.
template <int N, class F>
constexpr auto sum_of(F f) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    const bare<decltype(f(0))> parts[] = {f(int(K))...};
    return (... + parts[K]);
  }(std::make_index_sequence<size_t(N)>{});
}

template <class A>
concept VectorLike = Uniform<A> && is_vector<elem_t<A>>;
template <class A>
concept MatrixLike = Uniform<A> && is_matrix<elem_t<A>>;
template <class A>
concept SquareLike = MatrixLike<A> && Traits<elem_t<A>>::rows == Traits<elem_t<A>>::columns;

template <class A>
concept BoolLike = Uniform<A> && std::is_same_v<scalar_t<elem_t<A>>, bool>;

/// A scalar bool, or f(f(v[0], v[1]), v[2]) ….
template <class V, class F>
constexpr auto fold_bools(const V& v, F f) {
  using B = std::conditional_t<Device<V>, Val<bool>, bool>;
  constexpr int n = count_of<elem_t<V>>;
  if constexpr (n == 1)
    return B(v);
  else if constexpr (n == 2)
    return B(f(v[0], v[1]));
  else if constexpr (n == 3)
    return B(f(f(v[0], v[1]), v[2]));
  else
    return B(f(f(f(v[0], v[1]), v[2]), v[3]));
}

template <class A, class B>
struct SameSize {
  static constexpr bool ok = count_of<elem_t<A>> == count_of<elem_t<B>>;
  static_assert(ok, "quern: the number of components differs");
};

/// Determinant of the rows r0, r1 and columns c0, c1.
template <class M>
constexpr auto minor2(const M& m, int r0, int r1, int c0, int c1) {
  return m(r0, c0) * m(r1, c1) - m(r0, c1) * m(r1, c0);
}

}  // namespace detail

namespace lang {

template <detail::VectorLike A, detail::VectorLike B>
constexpr auto dot(A&& a, B&& b, Loc l = Loc::here()) {
  static_assert(detail::SameSize<A, B>::ok);
  [[maybe_unused]] detail::Here<A, B> here(l, std::forward<A>(a), std::forward<B>(b));
  auto&& x = detail::once(a);
  auto&& y = detail::once(b);
  return detail::sum_of<detail::count_of<detail::elem_t<A>>>([&](int k) { return x[k] * y[k]; });
}
template <detail::VectorLike A>
constexpr auto length_squared(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& x = detail::once(a);
  return dot(x, x, l);
}
template <detail::VectorLike A>
constexpr auto length(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  return sqrt(length_squared(a, l));
}
template <detail::VectorLike A, detail::VectorLike B>
constexpr auto distance(A&& a, B&& b, Loc l = Loc::here()) {
  static_assert(detail::SameSize<A, B>::ok);
  [[maybe_unused]] detail::Here<A, B> here(l, std::forward<A>(a), std::forward<B>(b));
  return length(detail::once(a) - detail::once(b), l);
}
/// a / length(a).
template <detail::VectorLike A>
constexpr auto normalize(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& x = detail::once(a);
  return x / length(x, l);
}
/// Of two vectors in space a vector, in the plane its third component.
template <detail::VectorLike A, detail::VectorLike B>
constexpr auto cross(A&& a, B&& b, Loc l = Loc::here()) {
  static_assert(detail::SameSize<A, B>::ok);
  constexpr int n = detail::count_of<detail::elem_t<A>>;
  static_assert(n < 4, "quern: cross takes vectors of two or three components");
  [[maybe_unused]] detail::Here<A, B> here(l, std::forward<A>(a), std::forward<B>(b));
  auto&& x = detail::once(a);
  auto&& y = detail::once(b);
  if constexpr (n == 2)
    return x[0] * y[1] - x[1] * y[0];
  else
    return detail::vector_from<3>([&](int k) {
      int i = (k + 1) % 3, j = (k + 2) % 3;
      return x[i] * y[j] - x[j] * y[i];
    });
}
/// i mirrored at the plane with unit normal n.
template <detail::VectorLike A, detail::VectorLike B>
constexpr auto reflect(A&& i, B&& n, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A, B> here(l, std::forward<A>(i), std::forward<B>(n));
  auto&& x = detail::once(i);
  auto&& y = detail::once(n);
  return x - 2 * dot(x, y, l) * y;
}
/// a (1 - t) + b t.
template <detail::Uniform A, detail::Uniform B, detail::Uniform T>
constexpr auto mix(A&& a, B&& b, T&& t, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A, B, T> here(l, std::forward<A>(a), std::forward<B>(b),
                                              std::forward<T>(t));
  auto&& w = detail::once(t);
  return detail::once(a) * (1 - w) + detail::once(b) * w;
}
template <detail::Uniform A, detail::Uniform B, detail::Uniform T>
constexpr auto lerp(const A& a, const B& b, const T& t, Loc l = Loc::here()) {
  return mix(a, b, t, l);
}

/// The matrix a bᵀ.
template <detail::VectorLike A, detail::VectorLike B>
constexpr auto outer(A&& a, B&& b, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A, B> here(l, std::forward<A>(a), std::forward<B>(b));
  auto&& x = detail::once(a);
  auto&& y = detail::once(b);
  return detail::matrix_from<detail::count_of<detail::elem_t<A>>,
                             detail::count_of<detail::elem_t<B>>>(
      [&](int r, int c) { return x[r] * y[c]; });
}
template <detail::MatrixLike M>
constexpr auto transpose(M&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  using T = detail::Traits<detail::elem_t<M>>;
  auto&& m = detail::once(a);
  return detail::matrix_from<T::columns, T::rows>([&](int r, int c) { return m(c, r); });
}
template <detail::SquareLike M>
constexpr auto trace(M&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  auto&& m = detail::once(a);
  return detail::sum_of<detail::Traits<detail::elem_t<M>>::rows>([&](int k) { return m(k, k); });
}
/// By expansion along the first two rows (Laplace).
template <detail::SquareLike M>
constexpr auto determinant(M&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  constexpr int n = detail::Traits<detail::elem_t<M>>::rows;
  auto&& m = detail::once(a);
  using detail::minor2;
  if constexpr (n == 2)
    return minor2(m, 0, 1, 0, 1);
  else if constexpr (n == 3)
    return m(0, 0) * minor2(m, 1, 2, 1, 2) - m(0, 1) * minor2(m, 1, 2, 0, 2) +
           m(0, 2) * minor2(m, 1, 2, 0, 1);
  else
    return minor2(m, 0, 1, 0, 1) * minor2(m, 2, 3, 2, 3) -
           minor2(m, 0, 1, 0, 2) * minor2(m, 2, 3, 1, 3) +
           minor2(m, 0, 1, 0, 3) * minor2(m, 2, 3, 1, 2) +
           minor2(m, 0, 1, 1, 2) * minor2(m, 2, 3, 0, 3) -
           minor2(m, 0, 1, 1, 3) * minor2(m, 2, 3, 0, 2) +
           minor2(m, 0, 1, 2, 3) * minor2(m, 2, 3, 0, 1);
}
}  // namespace lang

namespace detail {
/// The adjugate over the determinant.
template <MatrixLike M>
constexpr auto cramer(const M& m) {
  constexpr int n = Traits<elem_t<M>>::rows;
  // The cofactor of (r, c), found at (c, r) of the adjugate; others of a row wrap round, which
  // gives their sign where n is odd.
  auto adjugate = matrix_from<n, n>([&](int c, int r) {
    if constexpr (n == 2) {
      return (r == c ? 1 : -1) * m(1 - r, 1 - c);
    } else if constexpr (n == 3) {
      return minor2(m, (r + 1) % 3, (r + 2) % 3, (c + 1) % 3, (c + 2) % 3);
    } else {
      int i[3] = {}, j[3] = {};
      for (int k = 0, p = 0, q = 0; k < 4; k++) {
        if (k != r) i[p++] = k;
        if (k != c) j[q++] = k;
      }
      auto minor3 = m(i[0], j[0]) * minor2(m, i[1], i[2], j[1], j[2]) -
                    m(i[0], j[1]) * minor2(m, i[1], i[2], j[0], j[2]) +
                    m(i[0], j[2]) * minor2(m, i[1], i[2], j[0], j[1]);
      return ((r + c) % 2 == 0 ? 1 : -1) * minor3;
    }
  });
  return adjugate * (1 / lang::determinant(m));
}
}  // namespace detail

namespace lang {

/// The adjugate over the determinant; not finite where that is zero.
template <detail::SquareLike M>
constexpr auto inverse(M&& a, Loc l = Loc::here()) {
  static_assert(detail::Takes<detail::elem_t<M>, true>::ok);
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(a));
  return detail::by_rule("inverse", l, [](const auto& m) { return detail::cramer(m); }, a);
}

/// Do all components hold?
template <detail::BoolLike A>
constexpr auto all(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  return detail::fold_bools(detail::once(a), [](const auto& p, const auto& q) { return p & q; });
}
/// Does one?
template <detail::BoolLike A>
constexpr auto any(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  return detail::fold_bools(detail::once(a), [](const auto& p, const auto& q) { return p | q; });
}

}  // namespace lang

// Found through the operands' namespace, too.
using lang::all;
using lang::any;
using lang::cross;
using lang::determinant;
using lang::distance;
using lang::dot;
using lang::inverse;
using lang::length;
using lang::length_squared;
using lang::lerp;
using lang::mix;
using lang::normalize;
using lang::outer;
using lang::reflect;
using lang::trace;
using lang::transpose;

}  // namespace quern
