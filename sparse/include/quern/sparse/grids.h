#pragma once
// What files of OpenVDB's say of a grid beside its elements (quern/sparse/vdb.h includes it).
#include <array>
#include <cstdint>
#include <string>

namespace quern {

/// Where the elements of a grid lie: the centre of element (i, j, k) is at
/// origin + i · step[0] + j · step[1] + k · step[2].
struct GridTransform {
  using Vector = std::array<double, 3>;
  Vector origin = {};
  std::array<Vector, 3> step = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

  bool operator==(const GridTransform&) const = default;
};
/// Of elements that are cubes with edges of `size`.
constexpr GridTransform uniform_transform(double size, GridTransform::Vector origin = {}) {
  return {origin, {{{size, 0, 0}, {0, size, 0}, {0, 0, size}}}};
}

/// What the numbers of a grid mean to programs that read it.
enum class GridClass : uint8_t {
  unknown,
  level_set,   ///< distances to a surface near it; the background is that far outside, and above 0
  fog_volume,  ///< densities
  staggered,   ///< vectors whose components are those of the faces
};

struct GridInfo {
  GridTransform transform = {};
  GridClass grid_class = GridClass::unknown;
};

}  // namespace quern
