#pragma once
// The elements of a field that a ray passes through. Not part of quern.h.
//
// Element i of a field is the unit cube from i to i + 1. A ray is origin + t direction, for t from
// t0 to t1. On a tree (quern/sparse.h) the march goes through what is empty in one step for the
// largest cell that is not there: a digital differential analyser (Amanatides & Woo, "A Fast Voxel
// Traversal Algorithm for Ray Tracing", Eurographics 1987) that is hierarchical (Museth,
// "Hierarchical Digital Differential Analyzer for Efficient Ray-Marching in OpenVDB", SIGGRAPH
// Talks 2014).
//
// Which elements are visited follows from the ray alone, not from steps: the ray crosses plane n of
// axis k at t = (n - origin_k) · (1 / direction_k), computed so in the ray's type, one plane after
// another, of several at one t those of the lower axes first. All planes up to t0 are crossed when
// it begins. So the same elements come for every tree, and for a dense field with the same ones
// active.
#include <array>
#include <limits>

#include "quern/quern.h"

namespace quern {

/// An active element that a ray passes through. It may go unused, for its destructor is not
/// trivial.
template <class F, int N, class I>
struct RayVoxel {
  Val<Vec<I, N>> index;
  Val<F> t, t_end;        ///< where the ray enters it, and leaves it or ends
  Val<Vec<F, N>> normal;  ///< of the face that it enters through; 0 where it begins inside
  ~RayVoxel() {}
};

namespace detail {

/// The type that rays of these origins and directions are computed in.
template <class O, class D>
using ray_t = std::conditional_t<std::is_same_v<scalar_t<elem_t<O>>, double> ||
                                     std::is_same_v<scalar_t<elem_t<D>>, double>,
                                 double, float>;

template <class F, int N, class U>
Val<Vec<F, N>> ray_vector(const U& u, Loc loc) {
  using Given = elem_t<U>;
  constexpr bool fits =
      std::is_same_v<Given, Vec<float, N>> || std::is_same_v<Given, Vec<double, N>>;
  static_assert(fits,
                "quern: origin and direction of a ray are vectors of float or double with a "
                "component for each of the field's axes");
  if constexpr (fits)
    return {u, loc};
  else
    return {F(0), loc};
}

/// The march along one axis, in coordinates in which it goes towards greater ones: i or, where the
/// direction is negative, -1 - i, which is the complement of its bits.
template <class F, class I>
struct RayAxis {
  RayAxis(const Val<F>& origin, const Val<F>& direction, const Val<I>& low, const Val<I>& high)
      : backwards(direction < F(0)),
        mirror(select(backwards, I(-1), I(0))),
        from(select(backwards, -origin, origin)),
        reciprocal(F(1) / abs(direction)),
        moves((reciprocal > F(0)) & (reciprocal < std::numeric_limits<F>::infinity())),
        inverse(select(moves, reciprocal, F(0))),
        never(select(moves, F(0), std::numeric_limits<F>::infinity())),
        speed(select(moves, abs(direction), F(0))),
        first(select(backwards, high, low) ^ mirror),
        last(select(backwards, low, high) ^ mirror),
        at(first),
        end(last) {}

  Val<bool> backwards;
  Val<I> mirror;
  Val<F> from, reciprocal;
  Val<bool> moves;
  Val<F> inverse, never, speed;
  Val<I> first, last;  ///< of the field
  Var<I> at, end;  ///< it is in an element from one to the other, and leaves its box behind `end`
  Var<I> next = I(0);

  /// Where the ray comes to element i, from the one before, and where it leaves it.
  Val<F> enters(const Val<I>& i) const { return time(lang::cast<F>(i)); }
  Val<F> leaves(const Val<I>& i) const { return time(lang::cast<F>(i) + F(1)); }
  Val<F> time(const Val<F>& plane) const { return (plane - from) * inverse + never; }
  Val<I> index() const { return at ^ mirror; }
};

/// What `voxels_along_ray` yields.
template <class I, class F, class T, int N>
class RayMarch {
  using Axis = RayAxis<F, I>;
  static constexpr F infinity = std::numeric_limits<F>::infinity();

 public:
  RayMarch(const Field<T, N>& u, const Val<Vec<F, N>>& origin, const Val<Vec<F, N>>& direction,
           const Val<F>& t0, const Val<F>& t1, Loc loc)
      : RayMarch(u, origin, direction, t0, t1, loc, std::make_integer_sequence<int, N>{}) {}
  RayMarch(const RayMarch&) = delete;

  class Iterator {
   public:
    explicit Iterator(RayMarch& march)
        : march_(march), range_(lang::repeat_while([&] { return march.search(); }, march.loc_)) {}
    bool operator!=(End) const { return bool(range_.block); }
    RayVoxel<F, N, I> operator*() const { return march_.voxel(); }
    void operator++() { range_.block.done(); }

   private:
    RayMarch& march_;
    OnceRange range_;
  };
  QUERN_RECORDS Iterator begin() { return Iterator(*this); }
  End end() const { return {}; }

  /// How many boxes the march has gone through so far, of which each is an element or empty.
  Val<int32_t> steps() const { return steps_; }

 private:
  template <int... K>
  QUERN_RECORDS RayMarch(const Field<T, N>& u, const Val<Vec<F, N>>& origin,
                         const Val<Vec<F, N>>& direction, const Val<F>& t0, const Val<F>& t1,
                         Loc loc, std::integer_sequence<int, K...>)
      : field_(u),
        loc_(loc),
        t1_(t1),
        axes_{Axis(origin[K], direction[K], u.template first<I>(K, loc),
                   u.template first<I>(K, loc) + (u.template dim<I>(K, loc) - I(1)))...},
        t_(t0),
        t_in_(t0) {
    enter(t0);
  }

  template <class C>
  auto where(const C& condition) const {
    return lang::when({condition, loc_});
  }

  /// Has the ray crossed, along axis k, a plane at `t` when it is at t_ on axis_?
  Val<bool> crossed(int k, const Val<F>& t) const { return (t < t_) | ((t == t_) & (k < axis_)); }

  /// To where the ray comes into the field, or begins in it; to infinity where it does neither.
  void enter(const Val<F>& t0) {
    for (int k = 0; k < N; k++) {
      Val<F> t = axes_[size_t(k)].enters(axes_[size_t(k)].first);
      for ([[maybe_unused]] auto later : where(axes_[size_t(k)].moves & (t > t0) & (t >= t_))) {
        t_ = t;
        axis_ = k;
      }
    }
    Var<bool> misses = false;
    for (int k = 0; k < N; k++) {
      Axis& a = axes_[size_t(k)];
      auto beside = (a.from < lang::cast<F>(a.first)) | (a.from >= lang::cast<F>(a.last) + F(1));
      misses = misses | select(a.moves, crossed(k, a.leaves(a.last)), beside) | (a.from != a.from);
    }
    for (int k = 0; k < N; k++) {
      Axis& a = axes_[size_t(k)];
      a.end = select(axis_ == k, a.first, a.last);
    }
    for ([[maybe_unused]] auto nothing : where(misses)) t_ = infinity;
  }

  /// To the next active element. Is there one?
  Val<bool> search() {
    Var<bool> found = false, goes_on = t_ < t1_;
    for ([[maybe_unused]] auto round : lang::repeat_while([&] { return goes_on; }, loc_)) {
      for ([[maybe_unused]] auto vague : where(vague_)) locate();
      for ([[maybe_unused]] auto leaves : lang::otherwise(loc_)) leave();
      goes_on = false;
      Var<bool> inside = true;
      for (Axis& a : axes_) inside = inside & (a.at <= a.last);
      for ([[maybe_unused]] auto there : where(inside)) {
        goes_on = true;
        take_box(found);
        for ([[maybe_unused]] auto known : where(!vague_)) {
          steps_ += 1;
          t_in_ = t_;
          axis_in_ = axis_;
          aim();
          goes_on = !found & (t_ < t1_);
        }
      }
    }
    return found;
  }

  /// Out of the box. Along the axes but one the ray is where it was or farther.
  void leave() {
    for (int k = 0; k < N; k++) {
      Axis& a = axes_[size_t(k)];
      a.at = select(axis_ == k, a.end + I(1), a.at);
      a.end = select(axis_ == k, a.at, a.end);
    }
  }

  /// To the element that the ray is in at t_.
  void locate() {
    // A product of floats tells it, but for what is nearer to a plane than its errors and those of
    // the times of planes, which decide: less than 8 units in the last place of origin and way,
    // reciprocals that are off by 3 included.
    constexpr F error = 8 * std::numeric_limits<F>::epsilon();
    // Of a NaN min and max yield the bound.
    constexpr int lost = std::numeric_limits<I>::digits - std::numeric_limits<F>::digits;
    constexpr F far = F(std::numeric_limits<I>::max() >> max(lost, 0) << max(lost, 0));
    Var<bool> doubt = false;
    for (int k = 0; k < N; k++) {
      Axis& a = axes_[size_t(k)];
      auto way = t_ * a.speed;
      auto place = a.from + way;
      auto below = floor(place);
      auto near = error * (abs(a.from) + abs(way));
      auto beyond = place - below;
      doubt = doubt | ((a.at < a.end) & ((beyond <= near) | (beyond >= F(1) - near)));
      a.next = max(a.at, min(a.end, lang::cast<I>(min(far, max(-far, below)))));
    }
    for ([[maybe_unused]] auto rarely : where(doubt))
      for (int k = 0; k < N; k++) {
        Axis& a = axes_[size_t(k)];
        for ([[maybe_unused]] auto round : lang::repeat_while(
                 [&] { return a.moves & (a.next < a.end) & crossed(k, a.leaves(a.next)); }, loc_))
          a.next += I(1);
        for ([[maybe_unused]] auto round : lang::repeat_while(
                 [&] { return a.moves & (a.next > a.at) & !crossed(k, a.leaves(a.next - I(1))); },
                 loc_))
          a.next -= I(1);
      }
    for (Axis& a : axes_) {
      a.at = a.next;
      a.end = a.next;
    }
  }

  /// The box around `at`, as far as the field and ahead of the ray, if the ray is in it wherever it
  /// is.
  void take_box(Var<bool>& active) {
    std::array<Id, size_t(N)> index;
    std::array<Id, 1 + 2 * size_t(N)> answers;
    for (int k = 0; k < N; k++) index[size_t(k)] = axes_[size_t(k)].index().quern_ids(loc_).v[0];
    empty_box(field_.object(), index.data(), N, answers.data(), loc_);
    vague_ = false;
    for (int k = 0; k < N; k++) {
      Axis& a = axes_[size_t(k)];
      auto before = value<int32_t>(answers[size_t(1 + 2 * k)]);
      auto behind = value<int32_t>(answers[size_t(2 + 2 * k)]);
      Val<I> ahead = lang::cast<I>(select(a.backwards, before, behind));
      a.next = a.at + min(ahead, a.last - a.at);
      vague_ = vague_ | (a.next < a.end);
    }
    for (Axis& a : axes_) a.end = select(vague_, a.end, a.next);
    active = value<bool>(answers[0]) & !vague_;
  }

  /// At where the ray leaves the box.
  void aim() {
    t_ = axes_[0].leaves(axes_[0].end);
    axis_ = 0;
    for (int k = 1; k < N; k++) {
      Val<F> t = axes_[size_t(k)].leaves(axes_[size_t(k)].end);
      Val<bool> sooner = t < t_;
      axis_ = select(sooner, k, axis_);
      t_ = select(sooner, t, t_);
    }
  }

  RayVoxel<F, N, I> voxel() const {
    Var<Vec<I, N>> index;
    Var<Vec<F, N>> normal;
    for (int k = 0; k < N; k++) {
      const Axis& a = axes_[size_t(k)];
      index[k] = a.index();
      normal[k] = select(axis_in_ == k, select(a.backwards, F(1), F(-1)), F(0));
    }
    return {index, t_in_, min(t_, t1_), normal};
  }

  const Field<T, N> field_;
  const Loc loc_;
  const Val<F> t1_;
  std::array<Axis, size_t(N)> axes_;
  Var<F> t_;               ///< where the ray leaves the box that it is in
  Var<int32_t> axis_ = N;  ///< through a plane of this axis; N: it begins here
  Var<F> t_in_;            ///< where it came into the box, and through which axis
  Var<int32_t> axis_in_ = N;
  Var<bool> vague_ = true;  ///< the element that the ray is in is to be found
  Var<int32_t> steps_ = 0;
};

}  // namespace detail

namespace lang {

/// `for (auto voxel : voxels_along_ray(u, origin, direction, t0, t1)) {…}` runs for the active
/// elements of u, of two axes or more, that the ray comes into before t1, in order; `Break()` ends
/// it. Origin and direction are vectors of floats or doubles in elements, in which the march is
/// computed; a direction has any length, and components of which the reciprocal is not finite count
/// as 0. Of what iterations, this one included, make active, `is_active` says what holds. Below
/// hash() t1 should be finite: nothing else ends a ray before the end of indices. I = int64_t where
/// indices take 64 bits.
template <class I = int32_t, class T, int N, detail::Operand O, detail::Operand D>
  requires(N >= 2)
auto voxels_along_ray(
    const Field<T, N>& u, const O& origin, const D& direction,
    Arg<detail::ray_t<O, D>> t0 = detail::ray_t<O, D>(0),
    Arg<detail::ray_t<O, D>> t1 = std::numeric_limits<detail::ray_t<O, D>>::infinity(),
    Loc l = Loc::here()) {
  using F = detail::ray_t<O, D>;
  const Val<Vec<F, N>> from = detail::ray_vector<F, N>(origin, l);
  const Val<Vec<F, N>> along = detail::ray_vector<F, N>(direction, l);
  return detail::RayMarch<I, F, T, N>(u, from, along, Val<F>(t0.ids), Val<F>(t1.ids), l);
}

}  // namespace lang
}  // namespace quern
