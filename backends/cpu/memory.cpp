#include "backends/cpu/memory.h"

#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backends/cpu/parallel.h"
#include "backends/llvm/sanitizer.h"
#include "quern/error.h"

namespace quern::cpu {

namespace {
/// The address sanitizer watches the ends of blocks that the C library gives: with it all are.
constexpr bool are_watched = codegen::own_sanitizer == codegen::Sanitizer::address;
/// Up to here blocks share slabs; beyond `most_middle` they are whole pages.
constexpr uint64_t small = are_watched ? 0 : SmallBlocks::largest;
constexpr uint64_t most_middle = are_watched ? UINT64_MAX : 15 << 16;
/// Sizes between them: eight from each power of two to the next.
constexpr int log_sizes = 3;
constexpr uint64_t page = 4096;
constexpr uint64_t piece = 256 << 10;  ///< bytes a thread copies or fills at a time
/// The same of what is kept: so few that each thread has some of a small field, as what another has
/// written is far from its caches. Of `streamed` bytes and more it pays to write past them.
constexpr uint64_t kept_piece = 16 << 10, streamed = 64 << 10;

/// With room for any start in the first one.
uint64_t whole_pages(uint64_t bytes) {
  return bytes > UINT64_MAX - 2 * page ? UINT64_MAX : (bytes + 2 * page - 1) / page * page;
}

/// The next size of blocks between small ones and whole pages, and its number.
struct MiddleSize {
  uint64_t bytes = 0;
  size_t number = 0;
};
MiddleSize middle_size(uint64_t bytes) {
  const int shift = std::bit_width(bytes - 1) - 1 - log_sizes;
  const uint64_t units = ((bytes - 1) >> shift) + 1;  // 9 to 16 of them
  const int octave = shift + log_sizes - (std::bit_width(SmallBlocks::largest) - 1);
  return {units << shift, (size_t(octave) << log_sizes) + units - (1 << log_sizes) - 1};
}

void* obtain(uint64_t bytes) {
  if (bytes <= most_middle) {
    void* at = nullptr;
    return posix_memalign(&at, 64, bytes) == 0 ? at : nullptr;
  }
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_HUGEPAGE);
  return at;
}

void give_back(void* at, uint64_t bytes) {
  if (bytes <= most_middle)
    std::free(at);
  else
    munmap(at, bytes);
}

void copy_piece(std::byte* to, const std::byte* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}

/// Writes whole cache lines that are not read before, and that no cache keeps.
void stream(std::byte* to, const std::byte* from, uint64_t bytes) {
#ifdef __SSE2__
  constexpr uint64_t line = 64;
  const uint64_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % line);
  const uint64_t lines = (bytes - head) / line * line;
  copy_piece(to, from, head);
  for (uint64_t k = head; k < head + lines; k += sizeof(__m128i))
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
  _mm_sfence();
  copy_piece(to + head + lines, from + head + lines, bytes - head - lines);
#else
  copy_piece(to, from, bytes);
#endif
}

/// Calls f(first, bytes) for the blocks of `bytes`.
template <class F>
void by_blocks(uint64_t bytes, F&& f) {
  if (bytes < 4 * piece) return f(uint64_t(0), bytes);
  parallel_for((bytes + piece - 1) / piece, Waking::at_once,
               [&](uint64_t k) { f(k * piece, std::min(piece, bytes - k * piece)); });
}

uint64_t kept_pieces(const runtime::Copy& copy) {
  return (copy.bytes + kept_piece - 1) / kept_piece;
}
}  // namespace

Memory::~Memory() {
  keep_at_most(0);
  keep_no_middle();
  for (auto& [at, block] : blocks_) give_back(block.start, block.bytes);
}

uint64_t Memory::kept() const {
  std::lock_guard lock(mutex_);
  return kept_bytes_ + kept_middle_bytes_;
}

void Memory::keep_no_middle() {
  for (std::vector<void*>& blocks : kept_middle_) {
    for (void* at : blocks) std::free(at);
    blocks.clear();
  }
  kept_middle_bytes_ = 0;
}

void Memory::keep_at_most(uint64_t bytes) {
  size_t count = 0;
  for (; kept_bytes_ > bytes; count++) {
    give_back(kept_[count].start, kept_[count].bytes);
    kept_bytes_ -= kept_[count].bytes;
  }
  kept_.erase(kept_.begin(), kept_.begin() + std::ptrdiff_t(count));
}

/// The smallest of the kept blocks with so much and at most a quarter more, or a new one. Its start is
/// null where there is no memory.
Memory::Block Memory::find(uint64_t bytes) {
  auto best = kept_.end();
  for (auto it = kept_.begin(); it != kept_.end(); ++it)
    if (it->bytes >= bytes && it->bytes - bytes <= bytes / 4 &&
        (best == kept_.end() || it->bytes < best->bytes))
      best = it;
  if (best != kept_.end()) {
    const Block block = *best;
    kept_.erase(best);
    kept_bytes_ -= block.bytes;
    return block;
  }
  return make(bytes);
}

/// One of that size that is kept, or a new one, as above.
Memory::Block Memory::find_middle(uint64_t bytes) {
  const MiddleSize size = middle_size(bytes);
  std::vector<void*>& kept = kept_middle_[size.number];
  if (kept.empty()) return make(size.bytes);
  void* start = kept.back();
  kept.pop_back();
  kept_middle_bytes_ -= size.bytes;
  return {start, size.bytes};
}

Memory::Block Memory::make(uint64_t bytes) {
  const uint64_t left = limit_ - std::min(used_, limit_);
  if (bytes > left) return {};
  if (kept_middle_bytes_ > left - bytes) keep_no_middle();
  keep_at_most(left - bytes - kept_middle_bytes_);
  void* start = obtain(bytes);
  if (!start && kept_bytes_ + kept_middle_bytes_ > 0) {
    keep_no_middle();
    keep_at_most(0);
    start = obtain(bytes);
  }
  return {start, bytes};
}

void Memory::refuse(uint64_t bytes) const {
  throw Error("cannot allocate " + std::to_string(bytes) +
              " bytes on the cpu device: " + std::to_string(used_) +
              " bytes are in use, the machine has " + std::to_string(limit_));
}

void* Memory::allocate(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes <= small) {
    const uint64_t taken = SmallBlocks::taken_by(bytes);
    void* at = taken <= limit_ - std::min(used_, limit_) ? small_.allocate(bytes) : nullptr;
    if (!at) refuse(bytes);
    used_ += taken;
    return at;
  }
  const bool is_middle = bytes <= most_middle;
  const uint64_t skew = is_middle ? 0 : count_++ % 12 * 5 * 64;
  const Block block = are_watched ? make(bytes)
                      : is_middle ? find_middle(bytes)
                                  : find(whole_pages(bytes));
  if (!block.start) refuse(bytes);
  void* at = static_cast<std::byte*>(block.start) + skew;
  blocks_[at] = block;
  used_ += block.bytes;
  return at;
}

void Memory::release(void* address) {
  std::lock_guard lock(mutex_);
  if (const uint64_t taken = small_.release(address)) {
    used_ -= taken;
    return;
  }
  auto it = blocks_.find(address);
  if (it == blocks_.end()) throw InternalError("release of memory that was not allocated");
  const Block block = it->second;
  blocks_.erase(it);
  used_ -= block.bytes;
  if (are_watched || block.bytes > kept_limit) return give_back(block.start, block.bytes);
  if (block.bytes <= most_middle) {
    if (block.bytes > kept_middle_limit - kept_middle_bytes_) return std::free(block.start);
    kept_middle_[middle_size(block.bytes).number].push_back(block.start);
    kept_middle_bytes_ += block.bytes;
    return;
  }
  kept_.push_back(block);
  kept_bytes_ += block.bytes;
  keep_at_most(kept_limit);
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
  by_blocks(bytes,
            [&](uint64_t first, uint64_t n) { copy_piece(target + first, source + first, n); });
}

void copy_kept(std::span<const runtime::Command> copies) {
  uint64_t pieces = 0;
  for (const runtime::Command& c : copies) pieces += kept_pieces(std::get<runtime::Copy>(c));
  parallel_for(pieces, Waking::late, [&](uint64_t k) {
    const runtime::Copy* copy = &std::get<runtime::Copy>(copies[0]);
    for (size_t n = 1; k >= kept_pieces(*copy); n++) {
      k -= kept_pieces(*copy);
      copy = &std::get<runtime::Copy>(copies[n]);
    }
    const uint64_t first = k * kept_piece;
    (copy->bytes >= streamed ? stream : copy_piece)(
        reinterpret_cast<std::byte*>(copy->to + first),
        reinterpret_cast<const std::byte*>(copy->from + first),
        std::min(kept_piece, copy->bytes - first));
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
