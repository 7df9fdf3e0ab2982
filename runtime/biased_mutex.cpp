#include "quern/runtime/biased_mutex.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "quern/error.h"

namespace quern::runtime {

namespace {
long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }
}  // namespace

/// Registering takes 10 ms, once, in a process that has several threads by then. The slow barrier is asked
/// for, too: it is there for a process that is not registered, as one might be behind a fork.
bool Bias::has_barriers() {
  static const bool are_there = [] {
    constexpr int wanted = MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_GLOBAL;
    const long commands = membarrier(MEMBARRIER_CMD_QUERY);
    return commands > 0 && (commands & wanted) == wanted &&
           membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  }();
  return are_there;
}

void Bias::revoke() {
  if (is_revoked_.load(std::memory_order_relaxed)) return;
  is_revoked_.store(true);
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 && membarrier(MEMBARRIER_CMD_GLOBAL) != 0)
    throw InternalError("the system takes back the barriers of threads that it had");
}

void Bias::wait() const {
  constexpr int yields = 100, pause_us = 50;
  for (int k = 0; is_taken(); k++)
    if (k < yields)
      sched_yield();
    else
      usleep(pause_us);
}

void BiasedMutex::lock_revoked() {
  mutex_.lock();
  bias_.revoke();
  bias_.wait();
}

bool BiasedMutex::try_lock_revoked() {
  if (bias_.is_taken_here() || !mutex_.try_lock()) return false;
  bias_.revoke();
  if (!bias_.is_taken()) return true;
  mutex_.unlock();
  return false;
}

/// Its owner has not taken the bias, and others never do: the mutex keeps them out.
void BiasedSharedMutex::lock() {
  if (!bias_.is_own()) {
    const std::lock_guard lock(revoking_);
    bias_.revoke();
    bias_.wait();
  }
  mutex_.lock();
}

}  // namespace quern::runtime
