#include "backends/cpu/pool.h"

#include <sched.h>

#include <algorithm>

#include "backends/cpu/futex.h"
#include "backends/cpu/spin.h"
#include "runtime/signals.h"

namespace quern::cpu {

namespace {
using namespace std::chrono_literals;

/// Loops under way at once that get help; further ones run on their callers alone.
constexpr uint32_t slots = 8;
/// How long a helper looks for the next loop before it sleeps: the host's part between two launches.
constexpr auto idle_spin = 50us;
/// What waking a thread costs both sides.
constexpr auto wake_cost = 10us;
/// Threads that one thread wakes; each of them wakes as many.
constexpr int32_t wakes = 2;
}  // namespace

Pool::Pool(uint32_t helpers) : helpers_(helpers) {
  for (uint32_t k = 0; k < slots; k++) slots_.emplace_back(new Slot{Loop(helpers + 1)});
}

void Pool::run(uint64_t count, Waking waking, Body body, void* context) {
  const uint32_t running = count > 1 ? helpers() : 0;
  Slot* slot = running > 0 ? take_slot() : nullptr;
  if (!slot) {
    for (uint64_t k = 0; k < count; k++) body(context, k);
    return;
  }
  Loop& loop = slot->loop;
  const uint32_t threads = uint32_t(std::min<uint64_t>(count, running + 1));
  loop.publish(count, threads, body, context);
  posted_.fetch_add(1);
  const int32_t awake = int32_t(running - std::min(running, sleepers_.load()));
  const int32_t asleep = int32_t(threads - 1) - awake;
  const bool all_done =
      waking == Waking::late && asleep > 0 && loop.work(0, Loop::Clock::now() + wake_cost);
  if (!all_done) {
    slot->still_asleep.store(asleep, std::memory_order_relaxed);
    wake_some(*slot);
    loop.work(0);
  }
  loop.finish();
  slot->still_asleep.store(0, std::memory_order_relaxed);
  slot->taken.store(false, std::memory_order_release);
}

Pool::Slot* Pool::take_slot() {
  for (auto& slot : slots_)
    if (!slot->taken.load(std::memory_order_relaxed) &&
        !slot->taken.exchange(true, std::memory_order_acquire))
      return slot.get();
  return nullptr;
}

void Pool::wake_some(Slot& slot) {
  if (slot.still_asleep.load(std::memory_order_relaxed) <= 0) return;
  const int32_t left = slot.still_asleep.fetch_sub(wakes, std::memory_order_relaxed);
  if (left > 0) wake(posted_, std::min(left, wakes));
}

void Pool::help(uint32_t number) {
  for (;;) {
    const uint32_t seen = posted_.load();
    if (state_.load() == stopped) return;
    for (auto& slot : slots_)
      if (slot->loop.unfinished()) {
        wake_some(*slot);
        slot->loop.work(number);
      }
    auto posted = [&] { return posted_.load(std::memory_order_relaxed) != seen; };
    if (spin(idle_spin, Politeness::yields, posted)) continue;
    sleepers_.fetch_add(1);
    sleep_while(posted_, seen);
    sleepers_.fetch_sub(1);
  }
}

uint32_t Pool::helpers() {
  if (state_.load(std::memory_order_acquire) == fresh) start();
  return running_.load(std::memory_order_acquire);
}

void Pool::start() {
  uint32_t expected = fresh;
  if (!state_.compare_exchange_strong(expected, starting)) return;  // another thread does it
  const runtime::SignalsBlocked blocked;
  uint32_t granted = 0;
  for (Helper& helper : helpers_) {
    helper.pool = this;
    helper.number = granted + 1;
    auto body = [](void* at) -> void* {
      auto* self = static_cast<Helper*>(at);
      self->pool->help(self->number);
      return nullptr;
    };
    if (pthread_create(&helper.thread, nullptr, body, &helper) != 0) break;
    granted++;
  }
  running_.store(granted, std::memory_order_release);
  state_.store(started, std::memory_order_release);
}

void Pool::stop() {
  uint32_t expected = fresh;
  if (state_.compare_exchange_strong(expected, stopped) || expected == stopped) return;
  while (state_.load() == starting) sched_yield();
  state_.store(stopped);
  posted_.fetch_add(1);
  const uint32_t running = running_.exchange(0);
  wake(posted_, int(running));
  for (uint32_t k = 0; k < running; k++) pthread_join(helpers_[k].thread, nullptr);
}

void Pool::forget_helpers() {
  for (auto& slot : slots_) {
    slot->loop.forget();
    slot->taken.store(false);
  }
  sleepers_.store(0);
  running_.store(0);
  if (state_.load() != stopped) state_.store(fresh);
}

}  // namespace quern::cpu
