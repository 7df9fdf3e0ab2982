#include "backends/vulkan/memory.h"

#include <algorithm>

#include "quern/error.h"

namespace quern::vulkan {

namespace {
constexpr uint64_t alignment = 64;
constexpr uint64_t block_bytes = 32 << 20;  ///< larger requests get a block of their own
}  // namespace

Memory::Memory(std::shared_ptr<Gpu> gpu, uint32_t type, bool mapped)
    : gpu_(std::move(gpu)), type_(type), mapped_(mapped) {}

Memory::~Memory() {
  for (auto& [at, block] : blocks_) destroy(block);
}

runtime::Address Memory::allocate(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  uint64_t wanted = bytes > ~0ull - alignment ? bytes : (bytes + alignment - 1) & ~(alignment - 1);
  if (wanted > gpu_->adapter.max_allocation)
    throw Error("cannot allocate " + std::to_string(bytes) + " bytes: " + gpu_->adapter.name +
                " allows " + std::to_string(gpu_->adapter.max_allocation) +
                " bytes in one allocation");
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block)
    if (runtime::Address at = take(block, wanted)) return at;
  runtime::Address at = take(add_block(wanted), wanted);
  if (!at) throw InternalError("a new block of device memory does not start aligned");
  return at;
}

/// First fit; 0 where there is none.
runtime::Address Memory::take(Blocks::iterator block, uint64_t bytes) {
  Block& b = block->second;
  auto hole = std::ranges::find_if(b.free, [&](auto& h) { return h.second >= bytes; });
  if (hole == b.free.end()) return 0;
  auto [offset, size] = *hole;
  b.free.erase(hole);
  if (size > bytes) b.free[offset + bytes] = size - bytes;
  b.used[offset] = bytes;
  used_ += bytes;
  return block->first + offset;
}

Memory::Blocks::iterator Memory::add_block(uint64_t bytes) {
  Block block;
  block.bytes = std::min(std::max(bytes, block_bytes), gpu_->adapter.max_allocation);
  try {
    obtain(block);
  } catch (...) {
    destroy(block);
    throw;
  }
  auto info = structure<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  info.buffer = block.buffer;
  runtime::Address base = gpu_->GetBufferDeviceAddress(gpu_->handle, &info);
  uint64_t skip = -base & (alignment - 1);
  block.free[skip] = block.bytes - skip;
  return blocks_.emplace(base, std::move(block)).first;
}

void Memory::obtain(Block& block) {
  auto buffer = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  buffer.size = block.bytes;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  expect(gpu_->CreateBuffer(gpu_->handle, &buffer, nullptr, &block.buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  gpu_->GetBufferMemoryRequirements(gpu_->handle, block.buffer, &needs);

  auto flags = structure<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  auto info = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  info.pNext = &flags;
  info.allocationSize = needs.size;
  info.memoryTypeIndex = type_;
  VkResult result = gpu_->AllocateMemory(gpu_->handle, &info, nullptr, &block.memory);
  if (result != VK_SUCCESS)
    throw Error("cannot allocate " + std::to_string(needs.size) + " bytes on " +
                gpu_->adapter.name + ": " + result_name(result) + "; " + std::to_string(used_) +
                " bytes are in use");
  expect(gpu_->BindBufferMemory(gpu_->handle, block.buffer, block.memory, 0), "vkBindBufferMemory");
  void* host = nullptr;
  if (mapped_)
    expect(gpu_->MapMemory(gpu_->handle, block.memory, 0, VK_WHOLE_SIZE, 0, &host), "vkMapMemory");
  block.host = static_cast<std::byte*>(host);
}

void Memory::destroy(Block& block) {
  if (block.buffer) gpu_->DestroyBuffer(gpu_->handle, block.buffer, nullptr);
  if (block.memory) gpu_->FreeMemory(gpu_->handle, block.memory, nullptr);
}

Memory::Blocks::const_iterator Memory::containing(runtime::Address address) const {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return blocks_.end();
  auto block = std::prev(next);
  return address - block->first < block->second.bytes ? block : blocks_.end();
}

Memory::Place Memory::find(runtime::Address address, uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  auto block = containing(address);
  if (block == blocks_.end()) return {};
  uint64_t offset = address - block->first;
  const Block& b = block->second;
  if (bytes > b.bytes - offset) return {};
  return {b.buffer, offset, b.host ? b.host + offset : nullptr};
}

void Memory::release(runtime::Address address) {
  std::lock_guard lock(mutex_);
  auto found = containing(address);
  auto block = found == blocks_.end() ? blocks_.end() : blocks_.find(found->first);
  auto piece = block == blocks_.end() ? std::map<uint64_t, uint64_t>::iterator()
                                      : block->second.used.find(address - block->first);
  if (block == blocks_.end() || piece == block->second.used.end())
    throw InternalError("release of memory that was not allocated");
  Block& b = block->second;
  auto [offset, bytes] = *piece;
  b.used.erase(piece);
  used_ -= bytes;
  auto hole = b.free.emplace(offset, bytes).first;
  auto next = std::next(hole);
  if (next != b.free.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    b.free.erase(next);
  }
  if (hole != b.free.begin()) {
    auto previous = std::prev(hole);
    if (previous->first + previous->second == hole->first) {
      previous->second += hole->second;
      b.free.erase(hole);
    }
  }
  if (!b.used.empty() || (blocks_.size() == 1 && b.bytes <= 2 * block_bytes)) return;
  destroy(b);
  blocks_.erase(block);
}

}  // namespace quern::vulkan
