#pragma once
// Quaternions w + x i + y j + z k, on the host and on the device; not part of quern.h.
//
// A quaternion of length 1, with axis n and angle α, (n sin α/2, cos α/2), turns space about n by
// α, counterclockwise as seen against n; q and -q turn alike. `a * b` turns by b first. Formulas:
// Shoemake, "Animating Rotation with Quaternion Curves", SIGGRAPH 1985.
#include <limits>

#include "quern/math/numbers.h"

namespace quern {

/// Quaternion<> of floats, Quaternion<HostW, double>; Field, Val and Var hold it like any
/// structure.
template <class W = HostW, class T = float>
struct Quaternion {
  In<W, T> x, y, z, w;  ///< w is the real part
};

namespace detail {
template <class T>
struct NumberOf<Quaternion<HostW, T>> {
  using part = T;
  template <class F, class... A>
  static constexpr auto each(F f, const A&... a) {
    return number<Quaternion<HostW, T>>(f(a.x...), f(a.y...), f(a.z...), f(a.w...));
  }
  template <class A, class B>
  static constexpr auto equal(const A& a, const B& b) {
    return fold_bools(vec(a.x == b.x, a.y == b.y, a.z == b.z, a.w == b.w),
                      [](const auto& p, const auto& q) { return p & q; });
  }
};
template <class T>
inline constexpr bool is_quaternion = false;
template <class T>
inline constexpr bool is_quaternion<Quaternion<HostW, T>> = true;
template <class A>
concept QuaternionLike = Operand<A> && is_quaternion<elem_t<A>>;
// Apart, so that each is chosen before the function of plain numbers of its name.
template <class A>
concept HostQuaternion = Host<A> && is_quaternion<A>;
template <class A>
concept DeviceQuaternion = Device<A> && is_quaternion<elem_t<A>>;

/// The parts i, j, k.
template <class Q>
constexpr auto vector_part(const Q& q) {
  return vec(q.x, q.y, q.z);
}
/// sin α/2 and α/2 of the angle between two quaternions are found without a loss by half their
/// difference and sum (Kahan).
template <class A, class B>
constexpr auto angle_between(const A& a, const B& b) {
  return 2 * atan2(length(a - b), length(a + b));
}

/// The Taylor polynomial c[k] + c[k + 1] x + …
template <size_t k = 0, class X, class T, size_t N>
constexpr auto polynomial(const X& x, const T (&c)[N]) {
  if constexpr (k + 2 == N)
    return x * c[k + 1] + c[k];
  else
    return x * polynomial<k + 1>(x, c) + c[k];
}

/// Around 0 the sine and cosine of the length of a vector are polynomials of its square, so that
/// derivatives of any order are theirs.
template <class Q>
constexpr auto quaternion_exp(const Q& q) {
  using T = part_t<Q>;
  constexpr T sine[] = {T(1),          -T(1) / 6,        T(1) / 120,       -T(1) / 5040,
                        T(1) / 362880, -T(1) / 39916800, T(1) / 6227020800};
  constexpr T cosine[] = {T(1),         -T(1) / 2,       T(1) / 24,        -T(1) / 720,
                          T(1) / 40320, -T(1) / 3628800, T(1) / 479001600, -T(1) / 87178291200};
  auto v = vector_part(q);
  auto square = dot(v, v), scale = exp(q.w);
  auto near = square < T(0.0625);  // what is left out is below the precision
  auto small = select(near, square, T(0)), angle = sqrt(select(near, T(1), square));
  auto s = scale * select(near, polynomial(small, sine), sin(angle) / angle);
  auto w = scale * select(near, polynomial(small, cosine), cos(angle));
  return number<elem_t<Q>>(v.x * s, v.y * s, v.z * s, w);
}
/// Around the positive numbers, likewise, of the square of the tangent. That of q is that of q / m
/// and log m, for any constant m: with the largest part of q no square is out of range.
template <class Q>
constexpr auto quaternion_log(const Q& q) {
  using T = part_t<Q>;
  constexpr T arc[] = {T(1),     -T(1) / 3,  T(1) / 5,  -T(1) / 7,
                       T(1) / 9, -T(1) / 11, T(1) / 13, -T(1) / 15};
  auto most = max(max(abs(q.x), abs(q.y)), max(abs(q.z), abs(q.w)));
  auto scale =
      stop_gradient(select((most > 0) & (most <= std::numeric_limits<T>::max()), most, T(1)));
  auto v = vec(q.x / scale, q.y / scale, q.z / scale);
  auto real_part = q.w / scale, square = dot(v, v);
  auto near = (real_part > 0) & (square < real_part * real_part * T(0x1p-8));
  auto w = select(near, real_part, T(1));
  auto ratio = select(near, square, T(0)) / (w * w);
  // Of a real number nothing is divided by 0, nor in the derivative.
  auto real = square == 0;
  auto length = sqrt(select(real | near, T(1), square)), sine = select(real, T(0), length);
  auto angle = atan2(sine, real_part);
  auto s = select(near, polynomial(ratio, arc) / w, select(real, T(1), angle / length));
  auto modulus = select(near, log(w) + T(0.5) * log1p(ratio), log(hypot(sine, real_part)));
  return number<elem_t<Q>>(select(real & !near, angle, T(0)) + v.x * s, v.y * s, v.z * s,
                           log(scale) + modulus);
}
}  // namespace detail

// ---- making
/// Of its parts.
template <detail::ScalarLike X, detail::ScalarLike Y, detail::ScalarLike Z, detail::ScalarLike R>
constexpr auto quaternion(X&& x, Y&& y, Z&& z, R&& w, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<X, Y, Z, R> here(l, std::forward<X>(x), std::forward<Y>(y),
                                                 std::forward<Z>(z), std::forward<R>(w));
  auto v = vec(x, y, z, w);
  using T = detail::scalar_t<detail::elem_t<decltype(v)>>;
  return detail::number<Quaternion<HostW, T>>(v.x, v.y, v.z, v.w);
}
/// The turn about an axis of length 1 by an angle in radians.
template <detail::VectorLike N, detail::ScalarLike A>
constexpr auto quaternion(N&& axis, A&& angle, Loc l = Loc::here()) {
  static_assert(detail::count_of<detail::elem_t<N>> == 3, "quern: an axis has three components");
  [[maybe_unused]] detail::Here<N, A> here(l, std::forward<N>(axis), std::forward<A>(angle));
  using T = detail::scalar_t<detail::elem_t<N>>;
  auto&& n = detail::once(axis);
  auto half = detail::beside<Quaternion<HostW, T>>(angle) * T(0.5);
  auto s = sin(half);
  return detail::number<Quaternion<HostW, T>>(n[0] * s, n[1] * s, n[2] * s, cos(half));
}
/// The turn by a rotation matrix, up to the sign; from its largest part, so that nothing cancels
/// (Shepperd, "Quaternion from Rotation Matrix", Journal of Guidance and Control 1, 1978).
template <detail::SquareLike M>
constexpr auto quaternion(M&& rotation, Loc l = Loc::here()) {
  static_assert(detail::Traits<detail::elem_t<M>>::rows == 3, "quern: a rotation matrix is 3×3");
  [[maybe_unused]] detail::Here<M> here(l, std::forward<M>(rotation));
  using T = detail::scalar_t<detail::elem_t<M>>;
  auto&& m = detail::once(rotation);
  // 4 q qᵀ: four times the products of the parts.
  auto xx = 1 + m(0, 0) - m(1, 1) - m(2, 2), yy = 1 - m(0, 0) + m(1, 1) - m(2, 2);
  auto zz = 1 - m(0, 0) - m(1, 1) + m(2, 2), ww = 1 + m(0, 0) + m(1, 1) + m(2, 2);
  auto xy = m(1, 0) + m(0, 1), xz = m(2, 0) + m(0, 2), yz = m(2, 1) + m(1, 2);
  auto wx = m(2, 1) - m(1, 2), wy = m(0, 2) - m(2, 0), wz = m(1, 0) - m(0, 1);
  auto most = max(max(xx, yy), max(zz, ww));
  auto row = [&](const auto& x, const auto& y, const auto& z, const auto& w) {
    return select(ww == most, w, select(xx == most, x, select(yy == most, y, z)));
  };
  auto s = T(0.5) / sqrt(row(xx, yy, zz, ww));  // most, which varies as the parts chosen by it do
  return detail::number<Quaternion<HostW, T>>(row(xx, xy, xz, wx) * s, row(xy, yy, yz, wy) * s,
                                              row(xz, yz, zz, wz) * s, row(wx, wy, wz, ww) * s);
}

// ---- algebra
/// Hamilton's product.
template <detail::QuaternionLike A, detail::QuaternionLike B>
  requires detail::SameNumbers<A, B>
constexpr auto operator*(A&& a, B&& b) {
  [[maybe_unused]] detail::Here<A, B> here(Loc{}, std::forward<A>(a), std::forward<B>(b));
  auto&& p = detail::once(a);
  auto&& q = detail::once(b);
  return detail::number<detail::elem_t<A>>(
      p.w * q.x + p.x * q.w + p.y * q.z - p.z * q.y, p.w * q.y - p.x * q.z + p.y * q.w + p.z * q.x,
      p.w * q.z + p.x * q.y - p.y * q.x + p.z * q.w, p.w * q.w - p.x * q.x - p.y * q.y - p.z * q.z);
}
template <detail::QuaternionLike A, detail::QuaternionLike B>
  requires detail::SameNumbers<A, B>
constexpr auto dot(A&& a, B&& b, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A, B> here(l, std::forward<A>(a), std::forward<B>(b));
  auto&& p = detail::once(a);
  auto&& q = detail::once(b);
  return p.x * q.x + p.y * q.y + p.z * q.z + p.w * q.w;
}
template <detail::QuaternionLike A>
constexpr auto length_squared(const A& a, Loc l = Loc::here()) {
  auto&& q = detail::once(a);
  return dot(q, q, l);
}
/// The norm, √(x² + y² + z² + w²).
template <detail::QuaternionLike A>
constexpr auto length(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  return sqrt(length_squared(a));
}
template <detail::QuaternionLike A>
constexpr auto normalize(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& q = detail::once(a);
  return q / length(q);
}
/// w - x i - y j - z k: of a turn the turn back.
template <detail::QuaternionLike A>
constexpr auto conjugate(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& q = detail::once(a);
  return detail::number<detail::elem_t<A>>(-q.x, -q.y, -q.z, q.w);
}
/// conjugate(q) / length_squared(q); not finite where that is zero.
template <detail::QuaternionLike A>
constexpr auto inverse(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& q = detail::once(a);
  return conjugate(q) / length_squared(q);
}

/// e^w (cos |v| + v/|v| sin |v|), v the parts i, j, k.
template <detail::HostQuaternion A>
constexpr auto exp(const A& a) {
  return detail::quaternion_exp(a);
}
template <detail::DeviceQuaternion A>
auto exp(A&& a, Loc l = Loc::here()) {
  detail::Placed here(l, std::forward<A>(a));
  return detail::quaternion_exp(detail::once(a));
}
/// log |q| + v/|v| atan2(|v|, w); of a negative real number the axis is i.
template <detail::HostQuaternion A>
constexpr auto log(const A& a) {
  return detail::quaternion_log(a);
}
template <detail::DeviceQuaternion A>
auto log(A&& a, Loc l = Loc::here()) {
  detail::Placed here(l, std::forward<A>(a));
  return detail::quaternion_log(detail::once(a));
}

// ---- turning; quaternions of length 1
/// The vector turned: q v q⁻¹, as v + w t + u × t with u the parts i, j, k and t = 2 u × v.
template <detail::QuaternionLike A, detail::VectorLike V>
constexpr auto rotate(A&& a, V&& v, Loc l = Loc::here()) {
  static_assert(detail::count_of<detail::elem_t<V>> == 3, "quern: rotate takes three components");
  [[maybe_unused]] detail::Here<A, V> here(l, std::forward<A>(a), std::forward<V>(v));
  auto&& q = detail::once(a);
  auto&& p = detail::once(v);
  auto u = detail::vector_part(q);
  auto t = 2 * cross(u, p);
  return p + q.w * t + cross(u, t);
}
/// The matrix that turns likewise: rotation_matrix(q) * v is rotate(q, v).
template <detail::QuaternionLike A>
constexpr auto rotation_matrix(A&& a, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A> here(l, std::forward<A>(a));
  auto&& q = detail::once(a);
  auto x = 2 * q.x, y = 2 * q.y, z = 2 * q.z;
  auto xx = x * q.x, yy = y * q.y, zz = z * q.z, xy = x * q.y, xz = x * q.z, yz = y * q.z;
  auto wx = x * q.w, wy = y * q.w, wz = z * q.w;
  const decltype(xx) m[3][3] = {{1 - (yy + zz), xy - wz, xz + wy},
                                {xy + wz, 1 - (xx + zz), yz - wx},
                                {xz - wy, yz + wx, 1 - (xx + yy)}};
  return detail::matrix_from<3, 3>([&](int r, int c) { return m[r][c]; });
}
/// From a at t = 0 to b at t = 1 along the shorter great arc, at a constant rate: weights
/// sin((1 - t) θ) / sin θ and sin(t θ) / sin θ. Where θ nearly vanishes they are 1 - t and t, and
/// the result, as of nlerp, is normalized.
template <detail::QuaternionLike A, detail::QuaternionLike B, detail::ScalarLike S>
  requires detail::SameNumbers<A, B>
constexpr auto slerp(A&& a, B&& b, S&& t, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A, B, S> here(l, std::forward<A>(a), std::forward<B>(b),
                                              std::forward<S>(t));
  using T = detail::part_t<A>;
  auto&& p = detail::once(a);
  auto&& q = detail::once(b);
  auto k = detail::beside<A>(t);
  auto sign = select(dot(p, q) < 0, T(-1), T(1));
  auto angle = detail::angle_between(p, q * sign);
  auto sine = sin(angle);
  auto near = angle < (sizeof(T) == 4 ? T(1e-3) : T(1e-6));
  // There sin(k θ) / sin θ is k (1 + (1 - k²) θ² / 6) within the precision. Of equal quaternions θ²
  // has derivatives that θ does not have.
  auto apart = p - q * sign, sum = p + q * sign;
  auto square = 4 * dot(apart, apart) / dot(sum, sum);
  auto weight = [&](const auto& part) {
    return select(near, part * (1 + (1 - part * part) * square / 6), sin(part * angle) / sine);
  };
  auto first = weight(1 - k), second = weight(k) * sign;
  return normalize(p * first + q * second);
}
/// normalize(a (1 - t) ± b t), the shorter way: cheaper than slerp, at a rate not quite constant.
template <detail::QuaternionLike A, detail::QuaternionLike B, detail::ScalarLike S>
  requires detail::SameNumbers<A, B>
constexpr auto nlerp(A&& a, B&& b, S&& t, Loc l = Loc::here()) {
  [[maybe_unused]] detail::Here<A, B, S> here(l, std::forward<A>(a), std::forward<B>(b),
                                              std::forward<S>(t));
  using T = detail::part_t<A>;
  auto&& p = detail::once(a);
  auto&& q = detail::once(b);
  auto k = detail::beside<A>(t);
  return normalize(p * (1 - k) + q * select(dot(p, q) < 0, -k, T(1) * k));
}

namespace lang {
using quern::Quaternion;
using quern::quaternion;
using quat = Quaternion<HostW, float>;
using dquat = Quaternion<HostW, double>;
using Quat = Val<quat>;
using DQuat = Val<dquat>;
}  // namespace lang
}  // namespace quern
