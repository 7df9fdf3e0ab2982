#include "backends/cpu/loop.h"

#include <algorithm>

#include "backends/cpu/futex.h"
#include "backends/cpu/spin.h"

namespace quern::cpu {

namespace {
/// How long the publisher looks for the last runs of others: about what a sleep and a wake take.
constexpr std::chrono::microseconds finish_spin{20};
}  // namespace

void Loop::publish(uint64_t count, uint32_t parts, Body body, void* context) {
  const uint64_t stride = (count >> left_bits) + 1;
  const uint64_t claims = (count - 1) / stride + 1;
  used_.store(parts, std::memory_order_relaxed);
  count_.store(count, std::memory_order_relaxed);
  stride_.store(stride, std::memory_order_relaxed);
  body_.store(body, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  unfinished_.store(uint32_t(claims), std::memory_order_relaxed);
  publication_++;
  uint64_t end = 0;
  for (uint32_t p = 0; p < parts; p++) {
    const uint64_t size = claims / parts + (p < claims % parts);
    end += size;
    parts_[p].end.store(end, std::memory_order_relaxed);
    parts_[p].claims.store(publication_ << left_bits | size, std::memory_order_release);
  }
}

bool Loop::work(uint32_t first, Clock::time_point until) {
  const uint32_t used = used_.load(std::memory_order_relaxed);
  for (uint32_t p = 0; p < used; p++) {
    const uint32_t done = work_on(parts_[(first + p) % used], until);
    if (done > 0 && unfinished_.fetch_sub(done) == done && publisher_sleeps_.exchange(0))
      wake(publisher_sleeps_, 1);
    if (until != never && Clock::now() >= until) return false;
  }
  return true;
}

/// Returns how many claims it ran. What is read between the load of `claims` and the exchange that
/// succeeds belongs to the publication in it: the publisher changes that only when all claims are
/// reported as done, ours among them.
uint32_t Loop::work_on(Part& part, Clock::time_point until) {
  uint32_t done = 0;
  uint64_t claims = part.claims.load(std::memory_order_acquire);
  while (claims & left_mask) {
    const uint64_t claim = part.end.load(std::memory_order_relaxed) - (claims & left_mask);
    const uint64_t stride = stride_.load(std::memory_order_relaxed);
    const uint64_t count = count_.load(std::memory_order_relaxed);
    const Body body = body_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    if (!part.claims.compare_exchange_weak(claims, claims - 1, std::memory_order_acquire)) continue;
    const uint64_t begin = claim * stride, end = begin + std::min(stride, count - begin);
    for (uint64_t k = begin; k < end; k++) body(context, k);
    done++;
    if (until != never && Clock::now() >= until) break;
    claims = part.claims.load(std::memory_order_acquire);
  }
  return done;
}

void Loop::finish() {
  auto finished = [&] { return unfinished_.load() == 0; };
  if (spin(finish_spin, Politeness::keeps_processor, finished)) return;
  while (!finished()) {
    publisher_sleeps_.store(1);
    if (!finished()) sleep_while(publisher_sleeps_, 1);
  }
  publisher_sleeps_.store(0);
}

void Loop::forget() {
  for (Part& part : parts_) part.claims.store(0);
  unfinished_.store(0);
}

}  // namespace quern::cpu
