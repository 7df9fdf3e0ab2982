#pragma once
// Looking at memory for a short while before going to sleep.
#include <sched.h>

#include <chrono>

namespace quern::cpu {

enum class Politeness { keeps_processor, yields };

/// Looks until `condition` holds (true) or `limit` has passed (false). Who yields lets every other
/// thread of its processor go first.
template <class F>
bool spin(std::chrono::nanoseconds limit, Politeness politeness, const F& condition) {
  using Clock = std::chrono::steady_clock;
  if (condition()) return true;
  const Clock::time_point end = Clock::now() + limit;
  do {
    for (int k = 0; k < 8; k++) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("isb");
#endif
      if (condition()) return true;
    }
    if (politeness == Politeness::yields) sched_yield();
  } while (Clock::now() < end);
  return false;
}

}  // namespace quern::cpu
