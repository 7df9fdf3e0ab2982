#pragma once
// A grid between Quern's trees and the libraries of its files: leaves of 8 × 8 × 8 elements. Without
// anything of the language, so that those libraries' headers meet none of it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "quern/sparse/grids.h"

namespace quern::detail::vdb {

/// What is wrong with a file or a grid.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How types of elements are called in files, and the bytes of one; in the order of detail::GridType.
struct ElementType {
  const char* name;
  size_t bytes;
};
inline constexpr ElementType element_types[] = {{"bool", 1},   {"int32", 4},  {"int64", 8},
                                                {"float", 4},  {"double", 8}, {"vec3i", 12},
                                                {"vec3s", 12}, {"vec3d", 24}};

inline constexpr int leaf_elements = 512, leaf_words = leaf_elements / 32;
using Index = std::array<int32_t, 3>;

struct Grid {
  std::string name;
  size_t type = 0;  ///< among element_types
  GridInfo info;
  std::vector<std::byte> background;  ///< an element
  std::vector<Index> origins;         ///< of leaves
  std::vector<uint32_t> masks;    ///< of each leaf a bit for each element, row-major: is it active?
  std::vector<std::byte> values;  ///< of active elements, in the order of the bits
  int64_t dropped = 0;            ///< see VdbGrid
};

/// What a file says of a grid before it is read.
struct Entry {
  std::string name, type;  ///< of an element, as in element_types where Quern has it
};

/// The libraries of files. Functions throw what is derived from std::exception.
bool openvdb_is_here();
std::vector<std::byte> encode_openvdb(const std::vector<Grid>& grids);
std::vector<Entry> list_openvdb(std::span<const std::byte> file);
/// The grid at this place of the list, of this type.
Grid decode_openvdb(std::span<const std::byte> file, size_t number, size_t type,
                    int64_t most_active);
bool nanovdb_is_here();
std::vector<std::byte> encode_nanovdb(const std::vector<Grid>& grids);
std::vector<Entry> list_nanovdb(std::span<const std::byte> file);
Grid decode_nanovdb(std::span<const std::byte> file, size_t number, size_t type,
                    int64_t most_active);

/// Makes a Grid of leaves and tiles, and counts what it takes and drops.
class GridMaker {
 public:
  GridMaker(Grid& grid, int64_t most_active) : grid_(grid), most_(most_active) {}

  /// Calls value(n) and active(n) for the elements of a leaf; value yields what can be copied as bytes.
  template <class Value, class Active>
  void leaf(const Index& origin, Value&& value, Active&& active) {
    uint32_t words[leaf_words] = {};
    int64_t count = 0;
    for (int n = 0; n < leaf_elements; n++) {
      const auto v = value(n);
      if (active(n)) {
        words[n / 32] |= 1u << n % 32;
        append(grid_.values, v);
        count++;
      } else {
        grid_.dropped += !is_background(v);
      }
    }
    if (count == 0) return;
    take(count);
    grid_.origins.push_back(origin);
    grid_.masks.insert(grid_.masks.end(), words, words + leaf_words);
  }
  /// A cube of `size` elements along each axis with one value.
  template <class V>
  void tile(const Index& origin, int32_t size, const V& value, bool active) {
    const int64_t count = int64_t(size) * size * size;
    if (!active) {
      if (!is_background(value)) grid_.dropped += count;
      return;
    }
    take(count);
    for (int32_t x = 0; x < size; x += 8)
      for (int32_t y = 0; y < size; y += 8)
        for (int32_t z = 0; z < size; z += 8) {
          grid_.origins.push_back({origin[0] + x, origin[1] + y, origin[2] + z});
          grid_.masks.insert(grid_.masks.end(), leaf_words, ~0u);
          for (int n = 0; n < leaf_elements; n++) append(grid_.values, value);
        }
  }

 private:
  template <class V>
  static void append(std::vector<std::byte>& bytes, const V& v) {
    const auto* from = reinterpret_cast<const std::byte*>(&v);
    bytes.insert(bytes.end(), from, from + sizeof v);
  }
  template <class V>
  bool is_background(const V& v) const {
    return std::memcmp(&v, grid_.background.data(), sizeof v) == 0;
  }
  void take(int64_t count) {
    active_ += count;
    if (active_ > most_)
      throw Refusal("'" + grid_.name + "' has more than " + std::to_string(most_) +
                    " active elements, which is as many as are read where nothing else is said; "
                    "active tiles count as the elements that they stand for");
  }

  Grid& grid_;
  int64_t most_, active_ = 0;
};

}  // namespace quern::detail::vdb
