#pragma once
// Reading a field beyond its borders, and between its elements. Not part of quern.h.
//
// A border says which element stands for an index out of range: with elements a b c d,
//
//   border::clamp          a a a | a b c d | d d d     the nearest
//   border::wrap           b c d | a b c d | a b c     periodic
//   border::mirror         c b a | a b c d | d c b     mirrored at the edges
//   border::constant(v)    v v v | a b c d | v v v
//
// Nothing is read out of range, provided that the field has an element. All of it is recorded in
// plain operations of the language.
#include <array>

#include "quern/math/rules.h"
#include "quern/quern.h"

namespace quern {
namespace detail {

/// `place(i, first, count)`: the index, along an axis, of the element that stands for i. Inside it
/// is i by the answer of a comparison, for which stencils are split (ir/passes/walks/split_walks.h).
struct ClampBorder {
  template <class I>
  static Val<I> place(const Val<I>& i, const Val<I>& first, const Val<I>& count) {
    return max(min(i, first + count - 1), first);
  }
};
struct WrapBorder {
  template <class I>
  static Val<I> place(const Val<I>& i, const Val<I>& first, const Val<I>& count) {
    auto k = i - first, rest = k % count;
    return first + select((k >= 0) & (k < count), k, select(rest < 0, rest + count, rest));
  }
};
struct MirrorBorder {
  template <class I>
  static Val<I> place(const Val<I>& i, const Val<I>& first, const Val<I>& count) {
    auto k = i - first, right = select(k < 0, -1 - k, k);
    auto turns = right / count, rest = right - turns * count;
    auto folded = select((turns & 1) == 0, rest, count - 1 - rest);
    return first + select(right < count, right, folded);
  }
};
/// A value, of the host's or the device's, in place of an element.
template <Operand V>
struct ConstantBorder {
  V value;
};

template <class B>
inline constexpr bool is_constant_border = false;
template <class V>
inline constexpr bool is_constant_border<ConstantBorder<V>> = true;
template <class B>
concept Border = is_constant_border<B> || std::is_same_v<B, ClampBorder> ||
                 std::is_same_v<B, WrapBorder> || std::is_same_v<B, MirrorBorder>;

/// The element at indices `i` of axes K….
template <class T, int N, Border B, class I, int... K>
Val<T> read(const Field<T, N>& u, const B& border, const Val<I> (&i)[size_t(N)],
            std::integer_sequence<int, K...>) {
  const Val<I> first[] = {u.template first<I>(K)...}, count[] = {u.template dim<I>(K)...};
  if constexpr (is_constant_border<B>) {
    Val<T> nearest = u(ClampBorder::place(i[K], first[K], count[K])...);
    Val<bool> inside = (((i[K] >= first[K]) & (i[K] < first[K] + count[K])) & ...);
    return select(inside, nearest, Val<T>(border.value));
  } else {
    return u(border.place(i[K], first[K], count[K])...);
  }
}
template <class T, int N, Border B, class I>
Val<T> read(const Field<T, N>& u, const B& border, const Val<I> (&i)[size_t(N)]) {
  return read(u, border, i, std::make_integer_sequence<int, N>{});
}

template <class... I>
struct Indices {
  static constexpr bool integers = (Integer<scalar_t<elem_t<I>>> && ...);
  static_assert(integers, "quern: an index is an integer; write cast<int>(value)");
  using type = index_t<I...>;
};

/// What `bordered` yields.
template <class T, int N, Border B>
class Bordered {
 public:
  Bordered(const Field<T, N>& field, const B& border) : field_(field), border_(border) {}

  template <Operand I>
    requires(N == 1)
  Val<T> operator()(I&& i, Loc l = Loc::here()) const {
    return at<typename Indices<I>::type>(l, std::forward<I>(i));
  }
  template <Operand I, Operand J>
    requires(N == 2)
  Val<T> operator()(I&& i, J&& j, Loc l = Loc::here()) const {
    return at<typename Indices<I, J>::type>(l, std::forward<I>(i), std::forward<J>(j));
  }
  template <Operand I, Operand J, Operand K>
    requires(N == 3)
  Val<T> operator()(I&& i, J&& j, K&& k, Loc l = Loc::here()) const {
    return at<typename Indices<I, J, K>::type>(l, std::forward<I>(i), std::forward<J>(j),
                                               std::forward<K>(k));
  }

 private:
  template <class S, class... I>
  Val<T> at(Loc l, I&&... i) const {
    Placed placed(l, std::forward<I>(i)...);
    const Val<S> index[] = {Val<S>(i, l)...};
    return read(field_, border_, index);
  }
  Field<T, N> field_;
  B border_;
};

/// Along an axis: the index below a coordinate, and how far beyond it the coordinate lies.
template <class C>
struct Between {
  Val<int32_t> below;
  Val<C> beyond;
};
template <class C>
Between<C> between(const Val<C>& x) {
  // Of a NaN and an infinity the difference is NaN, and max and min yield the bounds.
  constexpr C far = 1 << 30;
  auto whole = floor(x);
  return {cast<int32_t>(min(far, max(-far, whole))), x - whole};
}

/// a + f (b - a), at f = 0 exactly a, whatever b is. That choice has no derivative in f, which the
/// rule "lerp" gives.
template <class R, class C>
Val<R> lerp(const Val<R>& a, const Val<R>& b, const Val<C>& f) {
  using S = scalar_t<R>;
  const auto between = [](const auto& from, const auto& to, const auto& part) {
    return select(part == 0, from, from + part * (to - from));
  };
  const Ids<R> from = a.quern_ids(Loc{}), to = b.quern_ids(Loc{});
  const Val<S> part = cast<S>(f);
  Ids<R> out;
  for (int k = 0; k < count_of<R>; k++) {
    const Val<S> made =
        by_rule("lerp", Loc{}, between, value_at<S>(from.v + k), value_at<S>(to.v + k), part);
    append_ids(made, out.v + k);
  }
  return Val<R>(out);
}

/// The interpolation between the elements with these indices along the first axes.
template <class R, class T, int N, Border B, class C, class... I>
Val<R> interpolated(const Field<T, N>& u, const B& border, const Between<C> (&at)[size_t(N)],
                    const I&... index) {
  if constexpr (sizeof...(I) == size_t(N)) {
    const Val<int32_t> all[] = {index...};
    return cast<scalar_t<R>>(read(u, border, all));
  } else {
    const auto& [below, beyond] = at[sizeof...(I)];
    Val<R> a = interpolated<R>(u, border, at, index..., below);
    Val<R> b = interpolated<R>(u, border, at, index..., below + 1);
    return lerp<R, C>(a, b, beyond);
  }
}

/// Along an axis: the first of the nodes whose B-splines reach a coordinate, and their values there.
template <int degree, class C>
struct Weights {
  Val<int32_t> first;
  std::array<Val<C>, degree + 1> of;
};
template <int degree, class C>
Weights<degree, C> weights(const Val<C>& x) {
  static_assert(degree == 2 || degree == 3, "quern: bspline<2> is quadratic, bspline<3> cubic");
  if constexpr (degree == 2) {
    const auto [node, beyond] = between<C>(x + C(0.5));
    auto f = beyond - C(0.5), below = C(0.5) - f, above = C(0.5) + f;
    return {node - 1, {C(0.5) * below * below, C(0.75) - f * f, C(0.5) * above * above}};
  } else {
    const auto [node, f] = between<C>(x);
    constexpr C sixth = C(1) / C(6);
    auto g = C(1) - f, f2 = f * f, g2 = g * g;
    return {node - 1,
            {sixth * g * g2, sixth * (C(4) - f2 * (C(6) - C(3) * f)),
             sixth * (C(4) - g2 * (C(6) - C(3) * g)), sixth * f * f2}};
  }
}

/// The sum over the nodes with these indices along the first axes.
template <int degree, class R, class T, int N, Border B, class C, class... I>
Val<R> blended(const Field<T, N>& u, const B& border, const Weights<degree, C> (&at)[size_t(N)],
               const I&... index) {
  if constexpr (sizeof...(I) == size_t(N)) {
    const Val<int32_t> all[] = {index...};
    return cast<scalar_t<R>>(read(u, border, all));
  } else {
    const auto& here = at[sizeof...(I)];
    return [&]<int... K>(std::integer_sequence<int, K...>) -> Val<R> {
      return ((here.of[size_t(K)] * blended<degree, R>(u, border, at, index..., here.first + K)) +
              ...);
    }(std::make_integer_sequence<int, degree + 1>{});
  }
}

/// What samples of elements T at coordinates X… are made of.
template <class T, class... X>
struct Sampling {
  static constexpr bool floats =
      ((is_floating<scalar_t<elem_t<X>>> && !is_half<scalar_t<elem_t<X>>>) && ...);
  static_assert(floats, "quern: a coordinate is float or double; write cast<float>(value)");
  static constexpr bool numbers = !is_structure<T> && !std::is_same_v<scalar_t<T>, bool>;
  static_assert(numbers,
                "quern: sample interpolates numbers, vectors and matrices; of structures sample a "
                "member, u.member(&S<>::m)");
  using Coordinate =
      std::conditional_t<((Device<X> && std::is_same_v<scalar_t<elem_t<X>>, double>) || ...),
                         double, float>;
  using Element = std::conditional_t<numbers, T, float>;
  using type = rebind_t<Element, common_t<scalar_t<Element>, Coordinate>>;
};
template <class T, int N, Border B, class... X>
auto sampled(const Field<T, N>& u, const B& border, Loc l, X&&... x) {
  using S = Sampling<T, X...>;
  Placed placed(l, std::forward<X>(x)...);
  const Between<typename S::Coordinate> at[] = {between(Val<typename S::Coordinate>(x, l))...};
  if constexpr (S::numbers)
    return interpolated<typename S::type>(u, border, at);
  else
    return at[0].beyond;
}

/// The same by B-splines.
template <int degree, class T, int N, Border B, class... X>
auto spline(const Field<T, N>& u, const B& border, Loc l, X&&... x) {
  using S = Sampling<T, X...>;
  using C = typename S::Coordinate;
  Placed placed(l, std::forward<X>(x)...);
  const Weights<degree, C> at[] = {weights<degree, C>(Val<C>(x, l))...};
  if constexpr (S::numbers)
    return blended<degree, typename S::type>(u, border, at);
  else
    return at[0].of[0];
}

}  // namespace detail

namespace lang {

namespace border {
inline constexpr detail::ClampBorder clamp;
inline constexpr detail::WrapBorder wrap;
inline constexpr detail::MirrorBorder mirror;
template <detail::Host V>
auto constant(const V& v) {
  return detail::ConstantBorder<V>{v};
}
template <detail::Device V>
auto constant(const V& v, Loc l = Loc::here()) {
  return detail::ConstantBorder<Val<detail::elem_t<V>>>{Val<detail::elem_t<V>>(v, l)};
}
}  // namespace border

/// The field with a border, to be read like the field, at any index: `auto p = bordered(u,
/// border::wrap); … p(i - 1, j) + p(i + 1, j) …`. Of one to three axes. Indices lie within ±2^30.
template <class T, int N, detail::Border B>
auto bordered(const Field<T, N>& u, const B& border) {
  static_assert(N >= 1 && N <= 3, "quern: a border is that of one to three axes");
  return detail::Bordered<T, N, B>(u, border);
}

/// Linear interpolation of the elements around a place: element (i, j) lies at coordinates
/// (i, j), and there the sample is that element exactly. Elements of integers and halves yield
/// floats; with coordinates of double the sample is double too. A coordinate that is not finite
/// yields NaN, one beyond ±2^30 counts as ±2^30.
template <class T, detail::Operand X, detail::Border B = detail::ClampBorder>
  requires detail::is_scalar<detail::elem_t<X>>
auto sample(const Field<T, 1>& u, X&& x, const B& border = {}, Loc l = Loc::here()) {
  return detail::sampled(u, border, l, std::forward<X>(x));
}
template <class T, detail::Operand X, detail::Operand Y, detail::Border B = detail::ClampBorder>
auto sample(const Field<T, 2>& u, X&& x, Y&& y, const B& border = {}, Loc l = Loc::here()) {
  return detail::sampled(u, border, l, std::forward<X>(x), std::forward<Y>(y));
}
template <class T, detail::Operand X, detail::Operand Y, detail::Operand Z,
          detail::Border B = detail::ClampBorder>
auto sample(const Field<T, 3>& u, X&& x, Y&& y, Z&& z, const B& border = {}, Loc l = Loc::here()) {
  return detail::sampled(u, border, l, std::forward<X>(x), std::forward<Y>(y), std::forward<Z>(z));
}
/// At a vector of coordinates.
template <class T, int N, detail::Device P, detail::Border B = detail::ClampBorder>
  requires(detail::is_vector<detail::elem_t<P>> && detail::count_of<detail::elem_t<P>> == N)
auto sample(const Field<T, N>& u, P&& at, const B& border = {}, Loc l = Loc::here()) {
  detail::Placed placed(l, std::forward<P>(at));
  if constexpr (N == 2)
    return detail::sampled(u, border, l, at.x, at.y);
  else
    return detail::sampled(u, border, l, at.x, at.y, at.z);
}

/// `bspline<2>(u, x, y)`, `bspline<3>(u, x, y)`: the quadratic or cubic spline whose coefficients are the
/// elements, each the uniform B-spline around its index (de Boor, "A Practical Guide to Splines", 1978).
/// It is smooth, of what is linear it is that, and it does not go through the elements. Types,
/// coordinates and borders as in `sample`.
template <int degree, class T, detail::Operand X, detail::Border B = detail::ClampBorder>
  requires detail::is_scalar<detail::elem_t<X>>
auto bspline(const Field<T, 1>& u, X&& x, const B& border = {}, Loc l = Loc::here()) {
  return detail::spline<degree>(u, border, l, std::forward<X>(x));
}
template <int degree, class T, detail::Operand X, detail::Operand Y,
          detail::Border B = detail::ClampBorder>
auto bspline(const Field<T, 2>& u, X&& x, Y&& y, const B& border = {}, Loc l = Loc::here()) {
  return detail::spline<degree>(u, border, l, std::forward<X>(x), std::forward<Y>(y));
}
template <int degree, class T, detail::Operand X, detail::Operand Y, detail::Operand Z,
          detail::Border B = detail::ClampBorder>
auto bspline(const Field<T, 3>& u, X&& x, Y&& y, Z&& z, const B& border = {}, Loc l = Loc::here()) {
  return detail::spline<degree>(u, border, l, std::forward<X>(x), std::forward<Y>(y),
                                std::forward<Z>(z));
}
/// At a vector of coordinates.
template <int degree, class T, int N, detail::Device P, detail::Border B = detail::ClampBorder>
  requires(detail::is_vector<detail::elem_t<P>> && detail::count_of<detail::elem_t<P>> == N)
auto bspline(const Field<T, N>& u, P&& at, const B& border = {}, Loc l = Loc::here()) {
  detail::Placed placed(l, std::forward<P>(at));
  if constexpr (N == 2)
    return detail::spline<degree>(u, border, l, at.x, at.y);
  else
    return detail::spline<degree>(u, border, l, at.x, at.y, at.z);
}

}  // namespace lang
}  // namespace quern
