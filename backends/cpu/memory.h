#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/cpu/small_blocks.h"
#include "quern/runtime/backend.h"

namespace quern::cpu {

/// Allocations of a driver, 64-byte aligned. Small ones share slabs. Large ones are whole pages;
/// they start at different places of a page, because equal places of several arrays compete for the
/// same cache sets and look alike to the CPU's check of loads against earlier stores. Up to
/// `kept_limit` bytes of those that were released wait for the next allocations of about their
/// size, as new pages cost more than what most kernels do with them; what is beyond goes back to
/// the system, the longest kept first. Those between are the C library's, rounded to an eighth; up
/// to `kept_middle_limit` bytes of them wait for the next of their size, as a tape keeps what
/// launches overwrite, thousands of times the same.
class Memory {
 public:
  static constexpr uint64_t kept_limit = 256 << 20, kept_middle_limit = 64 << 20;

  explicit Memory(uint64_t limit) : limit_(limit) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Throws Error with the sizes where the memory is not there.
  void* allocate(uint64_t bytes);
  /// Throws InternalError for an address that allocate did not give.
  void release(void* address);

  /// Bytes of released blocks that have not gone back to the system.
  uint64_t kept() const;

 private:
  struct Block {
    void* start = nullptr;
    uint64_t bytes = 0;
  };
  static constexpr size_t middle_sizes = 9 * 8 - 1;

  Block find(uint64_t bytes);
  Block find_middle(uint64_t bytes);
  Block make(uint64_t bytes);
  [[noreturn]] void refuse(uint64_t bytes) const;
  void keep_at_most(uint64_t bytes);
  void keep_no_middle();

  const uint64_t limit_;
  mutable std::mutex mutex_;
  uint64_t used_ = 0, kept_bytes_ = 0, count_ = 0;
  SmallBlocks small_;
  std::unordered_map<void*, Block> blocks_;                   ///< that are not small
  std::vector<Block> kept_;                                   ///< released, in that order
  std::array<std::vector<void*>, middle_sizes> kept_middle_;  ///< by size
  uint64_t kept_middle_bytes_ = 0;
};

/// memmove and pattern fill, by several threads where that pays.
void copy(void* to, const void* from, uint64_t bytes);
/// Copies that are kept (runtime::Copy::is_kept), all together. None overlaps another, or what it is
/// copied from.
void copy_kept(std::span<const runtime::Command> copies);
void fill(void* to, uint64_t bytes, uint32_t pattern);

}  // namespace quern::cpu
