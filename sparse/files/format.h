#pragma once
// A tree's file: what it holds, as bytes.
//
//   8 bytes   "QNTREE" CR LF
//   u32       version of the format, 1
//   u32       axes
//   i64, i64  extent, first index, of each axis
//   u32       levels, then of each: u32 kind (0 dense, 1 bitmasked, 2 pointer, 3 hash, 4 dynamic), i32
//             extent of each axis (0 of a hash), and of a dynamic one i32 elements of a chunk
//   u64       innermost cells that are there; below a dynamic level these are chunks
//   u32       elements of each
//   i64 …     of each cell and axis, the position of its first element, counted from the first index
//   u32 …     of each cell, a bit for each element, in the order of its levels (in each row-major, the
//             innermost next to each other): is it active? Of each chunk u32, how many are active, which
//             are its first ones
//   u32       fields, then of each:
//               u32, bytes   length of its name, and the name
//               u32, u8 …    components of an element, the type of each (1 bool, then i8 i16 i32 i64
//                            u8 u16 u32 u64 f16 f32 f64)
//               bytes …      the background, component after component
//               bytes …      of each component the active elements, in the order of the bits
//   u64       checksum of all before, as in runtime/bytes.h
//
// Cells come in the order of loops. Numbers are little-endian.
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sparse/tree.h"

namespace quern::detail {

struct TreeFileField {
  std::string name;
  std::vector<ir::Type> components;
  std::vector<std::byte> background;               ///< component after component
  std::vector<std::span<const std::byte>> values;  ///< of each component
};

struct TreeContent {
  std::vector<int64_t> shape, firsts;
  std::vector<TreeLevel> levels;
  uint32_t children = 1;  ///< elements of a cell
  std::vector<int64_t> places;
  /// Of each cell words() of them, a bit for each element; of each chunk how many are active.
  std::vector<uint32_t> activity;
  int64_t active = 0;  ///< elements
  std::vector<TreeFileField> fields;

  int64_t cells() const { return int64_t(places.size() / shape.size()); }
  bool has_lists() const { return !levels.empty() && levels.back().kind == TreeLevel::dynamic; }
  int64_t words() const { return has_lists() ? 1 : mask_words(children); }
  /// Elements that a word of `activity` says are active.
  uint32_t active_in(uint32_t word) const {
    return has_lists() ? word : uint32_t(std::popcount(word));
  }
};

/// Why a file's content is refused whose cells are not in the order of loops.
inline constexpr const char* other_cells =
    "its cells are not those of a tree of its levels, in order";

/// The same of one whose levels make cells of so many elements.
inline std::string other_children(int64_t children, const TreeContent& c) {
  return "its levels make cells of " + std::to_string(children) + " elements, and it says " +
         std::to_string(c.children);
}

std::vector<std::byte> encoded(const TreeContent& content);
/// The content, whose values are among the bytes. Throws Error that says what is wrong with the file.
TreeContent decoded(std::span<const std::byte> bytes, int rank, const std::string& path, Loc loc);

}  // namespace quern::detail
