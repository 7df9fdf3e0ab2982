#pragma once
// How the elements of a field lie in memory, as far as code is made for it. Extents, bases and the
// strides of whole blocks are no part of it: they stand in the argument block (quern/ir/abi.h).
#include <cstdint>
#include <vector>

namespace quern::ir {

/// The position along an axis is the index plus the field's origin there. Levels of blocks split it
/// into digits: the innermost level takes it modulo its extent, the next one the quotient modulo
/// its own, and so on; what is left numbers whole blocks, `abi::Place::stride` bytes apart. An
/// element lies where its digits, times their strides, lead to from the component's base.
struct Placement {
  static constexpr uint32_t max_axes = 8;

  /// Blocks of one size.
  struct Level {
    uint32_t extent[max_axes] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t stride[max_axes] = {};  ///< elements between neighbouring digits
    bool operator==(const Level&) const = default;
  };
  std::vector<Level> levels;  ///< outermost first; none: an index is one digit
  uint32_t step = 0;          ///< bytes between neighbouring elements; 0: the component's width
  uint32_t group = 0;         ///< elements of a component that lie together; 0: no limit
  uint32_t group_bytes = 0;   ///< from the start of such a group to the next
  std::vector<int32_t>
      offsets;           ///< bytes from component 0 to each; none: each has a base of its own
  bool shifted = false;  ///< the origin of some axis with blocks is not 0
  uint8_t fast = 0;      ///< the axis whose neighbours lie `step` apart where the field is
                         ///< contiguous, counted from the last
  bool operator==(const Placement&) const = default;

  bool has_blocks(uint32_t axis) const {
    for (const Level& l : levels)
      if (l.extent[axis] > 1) return true;
    return false;
  }
  /// Bytes between elements of a component of `width` bytes; `elements` is a distance within one
  /// group, or of whole groups.
  int64_t bytes(int64_t elements, uint32_t width) const {
    if (group && elements % group == 0) return elements / group * group_bytes;
    return elements * (step ? step : width);
  }
};

}  // namespace quern::ir
