#pragma once
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace quern::cpu {

/// Blocks of a few elements, 64-byte aligned, of which there may be very many: a tape keeps what each
/// launch has overwritten. Blocks of about one size lie in slabs, which are asked of the C library.
class SmallBlocks {
 public:
  static constexpr uint64_t largest = 2048;
  /// Slabs without a block in use that are kept for the next blocks.
  static constexpr size_t most_empty = 64;

  SmallBlocks() = default;
  ~SmallBlocks();
  SmallBlocks(const SmallBlocks&) = delete;
  SmallBlocks& operator=(const SmallBlocks&) = delete;

  /// What a block of so many bytes, `largest` at most, takes.
  static uint64_t taken_by(uint64_t bytes) { return (bytes + unit - 1) / unit * unit; }
  /// Null where the system has no memory.
  void* allocate(uint64_t bytes);
  /// What the block has taken; 0 where the address is none of a block in use.
  uint64_t release(void* block);

 private:
  static constexpr uint64_t unit = 64;
  static constexpr uint64_t slab_bytes = 64 << 10;  ///< at addresses that are multiples of it

  struct Slab {
    std::byte* start = nullptr;
    uint64_t block_bytes = 0;
    std::bitset<slab_bytes / unit> in_use;
    std::vector<uint16_t> free;  ///< numbers of blocks; the last one is taken next
    size_t blocks() const { return slab_bytes / block_bytes; }
  };
  using WithRoom = std::vector<Slab*>;
  WithRoom& with_room(uint64_t block_bytes) { return with_room_[block_bytes / unit - 1]; }
  Slab* make_slab(uint64_t block_bytes);

  std::unordered_map<uintptr_t, std::unique_ptr<Slab>> slabs_;  ///< by their starts
  std::array<WithRoom, largest / unit> with_room_;              ///< by the size of their blocks
  size_t empty_ = 0;
};

}  // namespace quern::cpu
