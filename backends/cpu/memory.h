#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace quern::cpu {

/// Allocations of a driver, 64-byte aligned. Large ones are whole pages, given back to the system
/// at once; they start at different places of a page, because equal places of several arrays
/// compete for the same cache sets and look alike to the CPU's check of loads against earlier
/// stores.
class Memory {
 public:
  explicit Memory(uint64_t limit) : limit_(limit) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Throws Error with the sizes where the memory is not there.
  void* allocate(uint64_t bytes);
  /// Throws InternalError for an address that allocate did not give.
  void release(void* address);

 private:
  uint64_t limit_;
  std::mutex mutex_;
  uint64_t used_ = 0, count_ = 0;
  struct Block {
    void* start;
    uint64_t bytes;
  };
  std::unordered_map<void*, Block> blocks_;
};

/// memmove and pattern fill, by several threads where that pays.
void copy(void* to, const void* from, uint64_t bytes);
void fill(void* to, uint64_t bytes, uint32_t pattern);

}  // namespace quern::cpu
