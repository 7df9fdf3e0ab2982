#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace quern::cpu {

/// Allocations of a driver. Small ones are 64-byte aligned, large ones page aligned and given back
/// to the system at once.
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
  uint64_t used_ = 0;
  std::unordered_map<void*, uint64_t> sizes_;
};

/// memmove and pattern fill, by several threads where that pays.
void copy(void* to, const void* from, uint64_t bytes);
void fill(void* to, uint64_t bytes, uint32_t pattern);

}  // namespace quern::cpu
