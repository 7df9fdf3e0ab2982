#pragma once
// Vectors and matrices of the host; on the device they are Val<Vec<T, N>> and Val<Mat<T, R, C>>.
#include <type_traits>
#include <utility>

#include "quern/types/swizzle.h"

namespace quern {
namespace detail {

template <class T, int N>
struct VectorData;
template <class T>
struct VectorData<T, 2> {
  T x{}, y{};
  constexpr VectorData() = default;
  constexpr VectorData(T a, T b) : x(a), y(b) {}
};
template <class T>
struct VectorData<T, 3> {
  T x{}, y{}, z{};
  constexpr VectorData() = default;
  constexpr VectorData(T a, T b, T c) : x(a), y(b), z(c) {}
};
template <class T>
struct VectorData<T, 4> {
  T x{}, y{}, z{}, w{};
  constexpr VectorData() = default;
  constexpr VectorData(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
};

/// Component `k` of anything with members x, y, z, w.
template <class V>
constexpr auto& member(V& v, int k) {
  if constexpr (requires { v.w; }) {
    if (k == 3) return v.w;
  }
  if constexpr (requires { v.z; }) {
    if (k == 2) return v.z;
  }
  return k == 0 ? v.x : v.y;
}

}  // namespace detail

// Operators of a host aggregate A of scalars S, component by component. `value(k)` is a component.
#define QUERN_HOST_OPERATOR(symbol, A, S)                                              \
  friend constexpr A operator symbol(const A& a, const A& b) {                         \
    A out;                                                                             \
    for (int k = 0; k < A::count; k++) out.value(k) = S(a.value(k) symbol b.value(k)); \
    return out;                                                                        \
  }                                                                                    \
  constexpr A& operator symbol##=(const A & b) { return *this = *this symbol b; }
#define QUERN_HOST_SCALING(symbol, A, S)                                      \
  friend constexpr A operator symbol(const A& a, S s) {                       \
    A out;                                                                    \
    for (int k = 0; k < A::count; k++) out.value(k) = S(a.value(k) symbol s); \
    return out;                                                               \
  }                                                                           \
  constexpr A& operator symbol##=(S s) { return *this = *this symbol s; }
#define QUERN_HOST_SCALED(symbol, A, S)                                       \
  friend constexpr A operator symbol(S s, const A& a) {                       \
    A out;                                                                    \
    for (int k = 0; k < A::count; k++) out.value(k) = S(s symbol a.value(k)); \
    return out;                                                               \
  }
#define QUERN_HOST_ALIKE(A, S)                                        \
  friend constexpr bool operator==(const A& a, const A& b) {          \
    for (int k = 0; k < A::count; k++)                                \
      if (!(a.value(k) == b.value(k))) return false;                  \
    return true;                                                      \
  }                                                                   \
  friend constexpr A operator-(const A& a) {                          \
    A out;                                                            \
    for (int k = 0; k < A::count; k++) out.value(k) = S(-a.value(k)); \
    return out;                                                       \
  }
// a < b by component, a Vec<bool, N>.
#define QUERN_HOST_ORDER(symbol)                                                \
  friend constexpr Vec<bool, N> operator symbol(const Vec & a, const Vec & b) { \
    Vec<bool, N> out;                                                           \
    for (int k = 0; k < N; k++) out.value(k) = a.value(k) symbol b.value(k);    \
    return out;                                                                 \
  }                                                                             \
  friend constexpr Vec<bool, N> operator symbol(const Vec & a, T s) {           \
    Vec<bool, N> out;                                                           \
    for (int k = 0; k < N; k++) out.value(k) = a.value(k) symbol s;             \
    return out;                                                                 \
  }

/// N = 2, 3 or 4 numbers or bools: .x .y .z .w, v[k], swizzles; operators by component, == as a
/// whole.
template <class T, int N>
struct Vec : detail::VectorData<T, N>, detail::Swizzles<Vec<T, N>, N> {
  static constexpr int count = N;
  using detail::VectorData<T, N>::VectorData;
  constexpr Vec() = default;
  /// All components the same.
  constexpr explicit Vec(T s) {
    for (int k = 0; k < N; k++) value(k) = s;
  }
  template <class U>
  constexpr explicit Vec(const Vec<U, N>& v) {
    for (int k = 0; k < N; k++) value(k) = T(v.value(k));
  }
  constexpr T& value(int k) { return detail::member(*this, k); }
  constexpr const T& value(int k) const { return detail::member(*this, k); }
  constexpr T& operator[](int k) { return value(k); }
  constexpr const T& operator[](int k) const { return value(k); }
  template <int... I>
  constexpr auto swizzle(Loc) const {
    return Vec<T, int(sizeof...(I))>(value(I)...);
  }

  QUERN_HOST_OPERATOR(+, Vec, T)
  QUERN_HOST_OPERATOR(-, Vec, T)
  QUERN_HOST_OPERATOR(*, Vec, T)
  QUERN_HOST_OPERATOR(/, Vec, T)
  QUERN_HOST_OPERATOR(%, Vec, T)
  QUERN_HOST_SCALING(+, Vec, T)
  QUERN_HOST_SCALING(-, Vec, T)
  QUERN_HOST_SCALING(*, Vec, T)
  QUERN_HOST_SCALING(/, Vec, T)
  QUERN_HOST_SCALING(%, Vec, T)
  QUERN_HOST_SCALED(+, Vec, T)
  QUERN_HOST_SCALED(-, Vec, T)
  QUERN_HOST_SCALED(*, Vec, T)
  QUERN_HOST_SCALED(/, Vec, T)
  QUERN_HOST_ALIKE(Vec, T)
  QUERN_HOST_ORDER(<)
  QUERN_HOST_ORDER(>)
  QUERN_HOST_ORDER(<=)
  QUERN_HOST_ORDER(>=)
};

/// R rows and C columns, 2 to 4 each, row by row; `m(r, c)`. `*` is the matrix product.
template <class T, int R, int C>
struct Mat {
  static_assert(R >= 2 && R <= 4 && C >= 2 && C <= 4,
                "quern: a matrix has 2 to 4 rows and columns");
  static constexpr int count = R * C;
  T m[R * C]{};

  constexpr Mat() = default;
  /// Its numbers, row by row.
  template <class... A>
    requires(int(sizeof...(A)) == R * C && (std::is_convertible_v<A, T> && ...))
  constexpr Mat(A... a) : m{T(a)...} {}
  /// Its rows.
  template <class... A>
    requires(int(sizeof...(A)) == R && (std::is_same_v<A, Vec<T, C>> && ...))
  constexpr Mat(const A&... rows) {
    int r = 0;
    (set_row(r++, rows), ...);
  }
  static constexpr Mat zero() { return {}; }
  static constexpr Mat identity() {
    Mat out;
    for (int k = 0; k < R && k < C; k++) out(k, k) = T(1);
    return out;
  }

  constexpr T& value(int k) { return m[k]; }
  constexpr const T& value(int k) const { return m[k]; }
  constexpr T& operator()(int r, int c) { return m[r * C + c]; }
  constexpr const T& operator()(int r, int c) const { return m[r * C + c]; }
  constexpr Vec<T, C> row(int r) const {
    Vec<T, C> out;
    for (int c = 0; c < C; c++) out[c] = (*this)(r, c);
    return out;
  }
  constexpr Vec<T, R> col(int c) const {
    Vec<T, R> out;
    for (int r = 0; r < R; r++) out[r] = (*this)(r, c);
    return out;
  }

  QUERN_HOST_OPERATOR(+, Mat, T)
  QUERN_HOST_OPERATOR(-, Mat, T)
  QUERN_HOST_SCALING(*, Mat, T)
  QUERN_HOST_SCALING(/, Mat, T)
  QUERN_HOST_SCALED(*, Mat, T)
  QUERN_HOST_ALIKE(Mat, T)
  template <int K>
  friend constexpr Mat<T, R, K> operator*(const Mat& a, const Mat<T, C, K>& b) {
    Mat<T, R, K> out;
    for (int r = 0; r < R; r++)
      for (int k = 0; k < K; k++)
        for (int c = 0; c < C; c++) out(r, k) = T(out(r, k) + a(r, c) * b(c, k));
    return out;
  }
  friend constexpr Vec<T, R> operator*(const Mat& a, const Vec<T, C>& v) {
    Vec<T, R> out;
    for (int r = 0; r < R; r++)
      for (int c = 0; c < C; c++) out[r] = T(out[r] + a(r, c) * v[c]);
    return out;
  }
  friend constexpr Vec<T, C> operator*(const Vec<T, R>& v, const Mat& a) {
    Vec<T, C> out;
    for (int c = 0; c < C; c++)
      for (int r = 0; r < R; r++) out[c] = T(out[c] + v[r] * a(r, c));
    return out;
  }

 private:
  constexpr void set_row(int r, const Vec<T, C>& v) {
    for (int c = 0; c < C; c++) (*this)(r, c) = v[c];
  }
};

#undef QUERN_HOST_OPERATOR
#undef QUERN_HOST_SCALING
#undef QUERN_HOST_SCALED
#undef QUERN_HOST_ALIKE
#undef QUERN_HOST_ORDER

}  // namespace quern
