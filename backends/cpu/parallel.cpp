#include "backends/cpu/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "quern/error.h"

namespace quern::cpu {

namespace {
/// What is left of a thread's own part, on a cache line of its own.
struct alignas(64) Part {
  std::atomic<uint64_t> next{0};
  uint64_t end = 0;
};
}  // namespace

namespace {
constexpr int max_threads = 4096;

/// What QUERN_THREADS says; 0 where it is not set, negative where it is no number of threads.
int wished_threads() {
  const char* wish = std::getenv("QUERN_THREADS");
  if (!wish || !*wish) return 0;
  int n = 0;
  auto [end, error] = std::from_chars(wish, wish + std::strlen(wish), n);
  return error == std::errc() && *end == 0 && n >= 1 && n <= max_threads ? n : -1;
}
}  // namespace

int worker_count() {
  static const int count = [] {
    int n = wished_threads();
    return n > 0 ? n : omp_get_max_threads();
  }();
  return count;
}

void expect_thread_number() {
  if (wished_threads() < 0)
    throw Error("QUERN_THREADS is '" + std::string(std::getenv("QUERN_THREADS")) +
                "'; it takes a number of threads from 1 to " + std::to_string(max_threads));
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
