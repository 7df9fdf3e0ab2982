#include "backends/cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backends/cpu/parallel.h"
#include "backends/llvm/sanitizer.h"
#include "quern/error.h"

namespace quern::cpu {

namespace {
/// Blocks from here on are whole pages; none with the address sanitizer, which watches the ends of
/// those that the C library gives.
constexpr uint64_t large =
    codegen::own_sanitizer == codegen::Sanitizer::address ? UINT64_MAX : 1 << 20;
constexpr uint64_t piece = 256 << 10;  ///< bytes a thread copies or fills at a time

void* obtain(uint64_t bytes) {
  if (bytes < large) {
    void* at = nullptr;
    return posix_memalign(&at, 64, bytes) == 0 ? at : nullptr;
  }
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_HUGEPAGE);
  return at;
}

void give_back(void* at, uint64_t bytes) {
  if (bytes < large)
    std::free(at);
  else
    munmap(at, bytes);
}

/// Calls f(first, bytes) for the blocks of `bytes`.
template <class F>
void by_blocks(uint64_t bytes, F&& f) {
  if (bytes < 4 * piece) return f(uint64_t(0), bytes);
  parallel_for((bytes + piece - 1) / piece, Waking::at_once,
               [&](uint64_t k) { f(k * piece, std::min(piece, bytes - k * piece)); });
}
}  // namespace

Memory::~Memory() {
  for (auto& [at, block] : blocks_) give_back(block.start, block.bytes);
}

void* Memory::allocate(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  uint64_t skew = bytes < large ? 0 : count_++ % 12 * 5 * 64;
  bool fits = bytes <= limit_ - std::min(used_, limit_);
  void* start = fits ? obtain(bytes + skew) : nullptr;
  if (!start)
    throw Error("cannot allocate " + std::to_string(bytes) +
                " bytes on the cpu device: " + std::to_string(used_) +
                " bytes are in use, the machine has " + std::to_string(limit_));
  void* at = static_cast<std::byte*>(start) + skew;
  blocks_[at] = {start, bytes + skew};
  used_ += bytes + skew;
  return at;
}

void Memory::release(void* address) {
  std::lock_guard lock(mutex_);
  auto it = blocks_.find(address);
  if (it == blocks_.end()) throw InternalError("release of memory that was not allocated");
  give_back(it->second.start, it->second.bytes);
  used_ -= it->second.bytes;
  blocks_.erase(it);
}

void copy(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return;  // the pointers may be null
  auto* target = static_cast<std::byte*>(to);
  auto* source = static_cast<const std::byte*>(from);
  bool apart = target + bytes <= source || source + bytes <= target;
  if (!apart) {
    std::memmove(to, from, bytes);
    return;
  }
  by_blocks(bytes, [&](uint64_t first, uint64_t count) {
    std::memcpy(target + first, source + first, count);
  });
}

void fill(void* to, uint64_t bytes, uint32_t pattern) {
  auto* target = static_cast<std::byte*>(to);
  by_blocks(bytes, [&](uint64_t first, uint64_t count) {
    if (pattern == (pattern & 0xff) * 0x01010101u) {
      std::memset(target + first, int(pattern & 0xff), count);
    } else {
      auto* words = reinterpret_cast<uint32_t*>(target + first);
      std::fill(words, words + count / 4, pattern);
    }
  });
}

}  // namespace quern::cpu
