#pragma once
// Device memory: addresses handed out from large blocks, since drivers allow few allocations.
#include <map>

#include "backends/vulkan/gpu.h"

namespace quern::vulkan {

/// Memory of one type. All members may be called from any thread.
class Memory {
 public:
  /// `mapped`: the host sees all of it, always.
  Memory(std::shared_ptr<Gpu> gpu, uint32_t type, bool mapped);
  ~Memory();
  Memory(const Memory&) = delete;

  /// 64-byte aligned. Throws Error with sizes where there is no room.
  runtime::Address allocate(uint64_t bytes);
  void release(runtime::Address address);

  struct Place {
    VkBuffer buffer = nullptr;
    uint64_t offset = 0;
    std::byte* host = nullptr;
  };
  /// Where `bytes` bytes from `address` on lie; without a buffer where not all do in this memory.
  Place find(runtime::Address address, uint64_t bytes) const;

 private:
  struct Block {
    VkBuffer buffer = nullptr;
    VkDeviceMemory memory = nullptr;
    std::byte* host = nullptr;
    uint64_t bytes = 0;
    std::map<uint64_t, uint64_t> free, used;  ///< offset -> bytes
  };
  using Blocks = std::map<runtime::Address, Block>;

  runtime::Address take(Blocks::iterator block, uint64_t bytes);
  Blocks::iterator add_block(uint64_t bytes);
  void obtain(Block& block);
  void destroy(Block& block);
  Blocks::const_iterator containing(runtime::Address address) const;

  std::shared_ptr<Gpu> gpu_;
  uint32_t type_;
  bool mapped_;
  mutable std::mutex mutex_;
  Blocks blocks_;
  uint64_t used_ = 0;
};

}  // namespace quern::vulkan
