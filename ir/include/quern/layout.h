#pragma once
// Where the elements of a field lie in memory, chosen when the field is made. Kernels never mention
// it: the same kernel runs on fields of any layout.
#include <cstdint>
#include <type_traits>

namespace quern {

/// A layout of a field. The usual one keeps each component (x, y, z of a vector, each member of a
/// struct) in an array of its own, in row-major order. The functions below say otherwise and
/// combine:
///
///     Field<Particle<>> p{device, {n}, aos};                       // as an array of the C++ struct
///     Field<float, 2> u{device, {n, m}, blocked(8, 8).morton()};   // in tiles
///     Field<float, 2> v{device, {n, m}, order(1, 0)};              // column-major
///     Field<float, 1> w{device, {n + 2}, offset(-1)};              // indices -1 … n
///
/// Extents need not be multiples of the blocks: what pads the last ones is never seen. Numbers that
/// make no sense are an Error where the field is made.
struct Layout {
  static constexpr int max_axes = 8, max_levels = 6;

  enum class Components : uint8_t {
    apart,     ///< an array for each component: structure of arrays
    together,  ///< an element's components side by side, exactly as in its C++ type
    grouped,   ///< an array for each component within each innermost block
  };
  /// One number for each axis, as many as were given.
  struct PerAxis {
    int64_t n[max_axes] = {};
    int count = 0;
  };

  Components components = Components::apart;
  bool in_morton_order = false;
  int level_count = 0;
  PerAxis levels[max_levels];  ///< blocks, outermost first
  PerAxis axes;                ///< from the slowest to the fastest; none: 0, 1, …
  PerAxis firsts;              ///< the first index of each axis; none: 0

  /// Elements as the C++ type has them in memory, here within what else the layout says.
  constexpr Layout aos() const { return with(Components::together); }
  /// Each component in an array of its own within each innermost block.
  constexpr Layout aosoa() const { return with(Components::grouped); }
  /// Splits each block further: `blocked(4, 4).of(8, 8)` are blocks of 4 × 4 blocks of 8 × 8
  /// elements.
  template <class... I>
  constexpr Layout of(I... extents) const {
    Layout l = *this;
    // One level too many is kept in the count, and refused where a field is made.
    if (l.level_count < max_levels) l.levels[l.level_count] = per_axis(extents...);
    l.level_count++;
    return l;
  }
  /// The elements of the innermost blocks along a Morton curve; extents there are powers of two.
  constexpr Layout morton() const {
    Layout l = *this;
    l.in_morton_order = true;
    return l;
  }
  /// Axes from the slowest to the fastest, inside blocks too: `order(1, 0)` is column-major.
  template <class... I>
  constexpr Layout order(I... slowest_to_fastest) const {
    Layout l = *this;
    l.axes = per_axis(slowest_to_fastest...);
    return l;
  }
  /// The index that each axis starts with, within ±2^30; it may be negative. Loops over the field,
  /// accesses and checks use indices first … first + extent - 1.
  template <class... I>
  constexpr Layout offset(I... first) const {
    Layout l = *this;
    l.firsts = per_axis(first...);
    return l;
  }

  template <class... I>
  static constexpr PerAxis per_axis(I... n) {
    static_assert(sizeof...(I) >= 1 && int(sizeof...(I)) <= max_axes,
                  "quern: a layout has one number for each axis");
    static_assert((std::is_integral_v<I> && ...), "quern: extents, axes and offsets are integers");
    return {{int64_t(n)...}, int(sizeof...(I))};
  }

 private:
  constexpr Layout with(Components c) const {
    Layout l = *this;
    l.components = c;
    return l;
  }
};

/// Each component in an array of its own, row-major: what a field has where nothing is said.
inline constexpr Layout soa{};
/// Elements as the C++ type has them: host copies are one copy, foreign arrays can be wrapped.
inline constexpr Layout aos = Layout{}.aos();

/// Blocks of so many elements along each axis, each block and the blocks in row-major order.
template <class... I>
constexpr Layout blocked(I... extents) {
  return Layout{}.of(extents...);
}
/// Blocks within which each component has an array of its own.
template <class... I>
constexpr Layout aosoa(I... extents) {
  return Layout{}.of(extents...).aosoa();
}
template <class... I>
constexpr Layout order(I... slowest_to_fastest) {
  return Layout{}.order(slowest_to_fastest...);
}
template <class... I>
constexpr Layout offset(I... first) {
  return Layout{}.offset(first...);
}

}  // namespace quern
