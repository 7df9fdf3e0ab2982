#pragma once
// Sleeping on a word of memory and waking those who sleep, at one system call each.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace quern::cpu {

static_assert(sizeof(std::atomic<uint32_t>) == 4);

/// Returns at once where the word is not `value`; else sleeps until a wake, or spuriously less.
inline void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

/// Wakes `count` of those who sleep on the word.
inline void wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace quern::cpu
