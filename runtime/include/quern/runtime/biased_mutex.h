#pragma once
// Mutexes that are nearly always taken by one thread.
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace quern::runtime {

/// What the thread that comes first takes and gives back by plain loads and stores, in a third of the time
/// that a std::mutex takes, until another thread revokes it, for good. That one pays for what orders the
/// first one's store and load: a barrier in all threads of the process (membarrier). After Dice, Huang and
/// Yang, "Asymmetric Dekker Synchronization". Where the system has no such barriers it is revoked from the
/// start.
class Bias {
 public:
  Bias() : is_revoked_(!has_barriers()) {}
  /// False where it is another thread's, is revoked, or taken.
  bool take() {
    if (is_revoked_.load(std::memory_order_relaxed)) return false;
    if (!is_own() || is_taken_.load(std::memory_order_relaxed)) return false;
    is_taken_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!is_revoked_.load(std::memory_order_acquire)) return true;
    is_taken_.store(false, std::memory_order_release);
    return false;
  }
  /// False where this thread had not taken it.
  bool give_back() {
    if (!is_taken_here()) return false;
    is_taken_.store(false, std::memory_order_release);
    return true;
  }
  bool is_taken_here() { return is_taken_.load(std::memory_order_relaxed) && is_own(); }
  /// Is this the thread that asked first?
  bool is_own() {
    const pthread_t self = pthread_self();
    pthread_t owner = owner_.load(std::memory_order_relaxed);
    return owner == self || (owner == 0 && owner_.compare_exchange_strong(owner, self));
  }

  // For who holds a lock that those hold who revoke it:
  /// Behind it nobody takes it any more, and who has taken it is seen. Throws InternalError where the
  /// system has barriers no longer.
  void revoke();
  bool is_taken() const { return is_taken_.load(std::memory_order_acquire); }
  void wait() const;

 private:
  static bool has_barriers();

  std::atomic<pthread_t> owner_{0};  ///< 0: nobody yet
  std::atomic<bool> is_taken_{false}, is_revoked_;
};

/// A std::mutex from when a second thread wants it. A thread that has it gets false from try_lock().
class BiasedMutex {
 public:
  void lock() {
    if (!bias_.take()) lock_revoked();
  }
  bool try_lock() { return bias_.take() || try_lock_revoked(); }
  void unlock() {
    if (!bias_.give_back()) mutex_.unlock();
  }

 private:
  void lock_revoked();
  bool try_lock_revoked();

  Bias bias_;
  std::mutex mutex_;
};

/// The same of a std::shared_mutex, for who shares it; until a second thread wants it alone.
class BiasedSharedMutex {
 public:
  void lock_shared() {
    if (!bias_.take()) mutex_.lock_shared();
  }
  void unlock_shared() {
    if (!bias_.give_back()) mutex_.unlock_shared();
  }
  void lock();
  void unlock() { mutex_.unlock(); }

 private:
  Bias bias_;
  std::mutex revoking_;  ///< held, before mutex_, by who waits for the owner: others still share
  std::shared_mutex mutex_;
};

}  // namespace quern::runtime
