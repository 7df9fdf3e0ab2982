#include "backends/cpu/small_blocks.h"

#include <algorithm>
#include <cstdlib>

namespace quern::cpu {

SmallBlocks::~SmallBlocks() {
  for (auto& [start, slab] : slabs_) std::free(slab->start);
}

SmallBlocks::Slab* SmallBlocks::make_slab(uint64_t block_bytes) {
  void* start = nullptr;
  if (posix_memalign(&start, slab_bytes, slab_bytes) != 0) return nullptr;
  auto slab = std::make_unique<Slab>();
  slab->start = static_cast<std::byte*>(start);
  slab->block_bytes = block_bytes;
  for (size_t k = slab->blocks(); k-- > 0;) slab->free.push_back(uint16_t(k));
  Slab* made = slab.get();
  slabs_[reinterpret_cast<uintptr_t>(start)] = std::move(slab);
  with_room(block_bytes).push_back(made);
  empty_++;
  return made;
}

void* SmallBlocks::allocate(uint64_t bytes) {
  const uint64_t block_bytes = taken_by(bytes);
  WithRoom& some = with_room(block_bytes);
  Slab* slab = some.empty() ? make_slab(block_bytes) : some.back();
  if (!slab) return nullptr;
  if (slab->free.size() == slab->blocks()) empty_--;
  const size_t k = slab->free.back();
  slab->free.pop_back();
  slab->in_use.set(k);
  if (slab->free.empty()) some.pop_back();
  return slab->start + k * block_bytes;
}

uint64_t SmallBlocks::release(void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  const auto found = slabs_.find(address / slab_bytes * slab_bytes);
  if (found == slabs_.end()) return 0;
  Slab& slab = *found->second;
  const uint64_t block_bytes = slab.block_bytes, k = address % slab_bytes / block_bytes;
  if (address % slab_bytes % block_bytes != 0 || !slab.in_use.test(k)) return 0;
  slab.in_use.reset(k);
  WithRoom& some = with_room(block_bytes);
  if (slab.free.empty()) some.push_back(&slab);
  slab.free.push_back(uint16_t(k));
  if (slab.free.size() < slab.blocks()) return block_bytes;
  if (++empty_ > most_empty) {
    std::erase(some, &slab);
    std::free(slab.start);
    slabs_.erase(found);
    empty_--;
  }
  return block_bytes;
}

}  // namespace quern::cpu
