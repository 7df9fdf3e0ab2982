#include "backends/cpu/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>

namespace quern::cpu {

namespace {
/// What is left of a thread's own part, on a cache line of its own.
struct alignas(64) Part {
  std::atomic<uint64_t> next{0};
  uint64_t end = 0;
};
}  // namespace

int worker_count() {
  static const int count = [] {
    const char* wish = std::getenv("QUERN_THREADS");
    int n = wish ? std::atoi(wish) : 0;
    return n > 0 ? n : omp_get_max_threads();
  }();
  return count;
}

void parallel_for(uint64_t count, void (*body)(void*, uint64_t), void* context) {
  int threads = int(std::min<uint64_t>(count, uint64_t(worker_count())));
  if (threads <= 1) {
    for (uint64_t k = 0; k < count; k++) body(context, k);
    return;
  }
  auto parts = std::make_unique<Part[]>(size_t(threads));
  for (int t = 0; t < threads; t++) {
    uint64_t share = count / uint64_t(threads), more = count % uint64_t(threads);
    auto first = [&](uint64_t p) { return p * share + std::min(p, more); };
    parts[size_t(t)].next.store(first(uint64_t(t)), std::memory_order_relaxed);
    parts[size_t(t)].end = first(uint64_t(t) + 1);
  }
  // The team may be smaller than asked for (a nested region); every part is visited by all.
#pragma omp parallel num_threads(threads)
  {
    int self = omp_get_thread_num();
    for (int t = 0; t < threads; t++) {
      Part& part = parts[size_t((self + t) % threads)];
      for (;;) {
        uint64_t k = part.next.fetch_add(1, std::memory_order_relaxed);
        if (k >= part.end) break;
        body(context, k);
      }
    }
  }
}

}  // namespace quern::cpu
