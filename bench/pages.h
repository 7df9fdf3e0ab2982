#pragma once
// Memory for the hand-written versions on the pages that Quern's fields get: whole huge pages where
// the system has them, and starts that differ within a page (see backends/cpu/memory.h).
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace bench {

template <class T>
struct HugePages {
  using value_type = T;
  HugePages() = default;
  template <class U>
  HugePages(const HugePages<U>&) {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T) + room;
    void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    madvise(start, bytes, MADV_HUGEPAGE);
    static std::atomic<std::size_t> count = 0;
    const std::size_t skew = 64 + count++ % 12 * 5 * 64;
    T* at = reinterpret_cast<T*>(static_cast<std::byte*>(start) + skew);
    reinterpret_cast<void**>(at)[-1] = start;
    return at;
  }
  void deallocate(T* at, std::size_t n) {
    munmap(reinterpret_cast<void**>(at)[-1], n * sizeof(T) + room);
  }
  bool operator==(const HugePages&) const { return true; }

 private:
  static constexpr std::size_t room = 4096;
};

template <class T>
using Array = std::vector<T, HugePages<T>>;

}  // namespace bench
