#pragma once
// How the elements of a field lie in memory, as far as code is made for it. Extents, bases and the
// strides of whole blocks are no part of it: they stand in the argument block (quern/ir/abi.h).
#include <cstdint>
#include <span>
#include <vector>

#include "quern/ir/type.h"

namespace quern::ir {

/// A component in memory: the type of its values, and what memory holds of them.
struct Storage {
  Type value = Type::none;
  Type storage = Type::none;
  bool operator==(const Storage&) const = default;
};

/// A layout is a list of levels. The position along an axis is the index plus the field's origin
/// there, and each level takes a digit of it: the innermost one the position modulo its extent, the
/// next one the quotient modulo its own, and so on. The outermost level is dense and in no list: its
/// digit is what the others leave, its extents and strides (`abi::Place::stride`) are known to a
/// launch alone. An element lies where its digits, times their strides, lead to from the component's
/// base.
///
/// What a level does to an index is asked here, by digits, and nowhere else.
struct Placement {
  static constexpr uint32_t max_axes = 8;

  /// Blocks of one size.
  struct Level {
    uint32_t extent[max_axes] = {1, 1, 1, 1, 1, 1, 1, 1};  ///< 1: takes no digit of the axis
    uint32_t stride[max_axes] = {};                        ///< elements between neighbouring digits
    bool operator==(const Level&) const = default;
  };
  std::vector<Level> levels;  ///< but the outermost one; from the outside inwards

  /// Cells of one size, each named by a slot, which exist or not. What they consist of, children, are
  /// cells of the next pool, or elements.
  struct Pool {
    std::vector<Level> levels;  ///< take the digits that number a cell's children
    uint32_t children = 1;      ///< of a cell: the product of all extents
    /// Of the last pool: so many children that follow each other are active together, by a bit for
    /// each such unit of a cell; all of a cell's: they are active where it is.
    uint32_t unit = 1;
    /// There is a slot for each child of the pools above, who has no choice: slots are never short, and
    /// nobody takes one in vain.
    bool direct = false;
    /// Of the last pool: its cells hold lists along the last axis, each one in the cells of so many
    /// children, one after another, of the pool above. 0: they do not.
    uint32_t chunks = 0;
    /// Of the root's: children are found by a hash of their coordinates, of each of which so many
    /// words of 31 bits are kept. `levels` does not reach them then: they are what the digits of the
    /// pools below leave.
    uint8_t key[max_axes] = {};
    bool operator==(const Pool&) const = default;
    bool has_mask() const { return unit < children; }
    bool has_lists() const { return chunks != 0; }
    uint32_t key_words() const {
      uint32_t n = 0;
      for (uint8_t words : key) n += words;
      return n;
    }
    bool is_hashed() const { return key_words() != 0; }
  };
  /// Of a field on a tree, from its root on, which is one cell (quern/ir/trees.h): the last one's
  /// children are the elements, in one array for all cells, of which the members beside tell.
  std::vector<Pool> pools;
  /// Of a field whose elements are cells of one of the tree's levels: so many elements of the tree
  /// each has along an axis. 0: its elements are the tree's.
  uint32_t cell[max_axes] = {};
  bool cut = false;      ///< of a field on a tree: its indices may be fewer than the tree's
  bool wide = false;     ///< of a field on a tree: positions on it take 64 bits
  bool rebased = false;  ///< of a field on a tree: its indices name other elements than the tree's
  uint32_t step = 0;     ///< bytes between neighbouring elements; 0: the component's width
  uint32_t group = 0;    ///< elements of a component that lie together; 0: no limit
  uint32_t group_bytes = 0;  ///< from the start of such a group to the next
  std::vector<int32_t>
      offsets;           ///< bytes from component 0 to each; none: each has a base of its own
  bool shifted = false;  ///< the origin of some axis is not 0
  uint8_t fast = 0;      ///< the axis whose neighbours lie `step` apart where the field is
                         ///< contiguous, counted from the last
  bool operator==(const Placement&) const = default;

  /// Calls visit(extent, stride) for each digit of an axis but the outermost one, innermost first.
  template <class F>
  void for_each_digit(uint32_t axis, F&& visit) const {
    for (size_t k = levels.size(); k-- > 0;)
      if (levels[k].extent[axis] > 1) visit(levels[k].extent[axis], levels[k].stride[axis]);
  }
  /// The same with numbers: visit(digit, extent, stride). The outermost digit comes back.
  template <class F>
  int64_t split(uint32_t axis, int64_t position, F&& visit) const {
    for_each_digit(axis, [&](int64_t extent, int64_t stride) {
      visit(position % extent, extent, stride);
      position /= extent;
    });
    return position;
  }
  /// Positions along an axis that share their outermost digit.
  int64_t block(uint32_t axis) const {
    int64_t n = 1;
    for_each_digit(axis, [&](int64_t extent, int64_t) { n *= extent; });
    return n;
  }
  /// Are neighbours along the axis equally far apart everywhere? Its origin is 0 then: the bases lie
  /// where index 0 would.
  bool is_linear(uint32_t axis) const { return block(axis) == 1; }
  /// Is a component one array: no level but the outermost one, and no groups?
  bool is_dense() const { return levels.empty() && !group && pools.empty(); }
  bool is_sparse() const { return !pools.empty(); }
  bool is_of_cells() const { return cell[0] != 0; }
  /// The axis that loops walk innermost, of a field with so many.
  uint32_t fast_axis(uint32_t rank) const { return rank - 1u - fast; }
  /// Axis k is what axis axes[k] was; others are no more.
  void take_axes(std::span<const uint32_t> axes) {
    for (Level& level : levels) {
      const Level all = level;
      level = {};
      for (size_t k = 0; k < axes.size(); k++) {
        level.extent[k] = all.extent[axes[k]];
        level.stride[k] = all.stride[axes[k]];
      }
    }
  }
  /// Bytes between elements of a component of `width` bytes; `elements` is a distance within one
  /// group, or of whole groups.
  int64_t bytes(int64_t elements, uint32_t width) const {
    if (group && elements % group == 0) return elements / group * group_bytes;
    return elements * (step ? step : width);
  }
};

}  // namespace quern::ir
