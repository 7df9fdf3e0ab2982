// Mutexes that one thread takes by plain loads and stores until another one comes.
#include "quern/runtime/biased_mutex.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace quern::runtime;

namespace {

template <class F>
void on_another_thread(F f) {
  std::thread(f).join();
}

/// A mutex and what it guards: a number, to which both threads add by a load and a store.
template <class Mutex>
struct Guarded {
  alignas(64) Mutex mutex;
  alignas(64) int sum = 0;
  void add() {
    const int seen = sum;
    asm volatile("" ::: "memory");
    sum = seen + 1;
  }
};

/// Calls owner(one) on this thread and other(one) on a second one for each of `all`, of which this thread
/// is the first; both begin at once, but for a few turns that the other one waits, so that it comes between
/// any two steps of the owner's.
template <class One, class Owner, class Other>
void by_two(std::vector<One>& all, Owner owner, Other other) {
  alignas(64) std::atomic<size_t> here{0};
  alignas(64) std::atomic<size_t> there{0};
  const auto meet = [](std::atomic<size_t>& mine, const std::atomic<size_t>& theirs, size_t k) {
    mine = k;
    while (theirs < k) continue;
  };
  std::thread second([&] {
    for (size_t k = 0; k < all.size(); k++) {
      meet(there, here, k + 1);
      for (size_t turn = 0; turn < k % 64; turn++) asm volatile("" ::: "memory");
      other(all[k]);
    }
  });
  for (size_t k = 0; k < all.size(); k++) {
    meet(here, there, k + 1);
    owner(all[k]);
  }
  second.join();
}

constexpr size_t many = 20'000;
constexpr int rounds = 30;

}  // namespace

TEST_CASE("a biased mutex keeps two threads apart while it changes hands") {
  using One = Guarded<BiasedMutex>;
  std::vector<One> all(many);
  for (One& one : all) const std::lock_guard lock(one.mutex);  // this thread's from here on
  by_two(
      all,
      [](One& one) {
        for (int n = 0; n < rounds; n++) {
          const std::lock_guard lock(one.mutex);
          one.add();
        }
      },
      [](One& one) {
        const std::lock_guard lock(one.mutex);
        one.add();
      });
  size_t lost = 0;
  for (const One& one : all) lost += one.sum != rounds + 1;
  CHECK(lost == 0);
}

TEST_CASE("who tries to lock a biased mutex gets it when nobody has it") {
  BiasedMutex mutex;
  const auto other_gets_it = [&] {
    bool gets_it = false;
    on_another_thread([&] {
      gets_it = mutex.try_lock();
      if (gets_it) mutex.unlock();
    });
    return gets_it;
  };
  REQUIRE(mutex.try_lock());
  CHECK_FALSE(mutex.try_lock());  // as of std::mutex, which says so nearly always
  CHECK_FALSE(other_gets_it());   // it is revoked, and still held
  CHECK_FALSE(mutex.try_lock());
  mutex.unlock();
  CHECK(other_gets_it());
  {
    const std::lock_guard lock(mutex);
    CHECK_FALSE(other_gets_it());
  }
  CHECK(other_gets_it());
}

TEST_CASE("another thread waits for who has a biased mutex") {
  BiasedMutex mutex;
  std::atomic<bool> asks{false}, has_it{false};
  mutex.lock();
  std::thread other([&] {
    asks = true;
    mutex.lock();
    has_it = true;
    mutex.unlock();
  });
  while (!asks) continue;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(has_it);
  mutex.unlock();
  other.join();
  CHECK(has_it);
}

TEST_CASE("a biased mutex whose owner has ended is taken by others") {
  BiasedMutex mutex;
  on_another_thread([&] { const std::lock_guard lock(mutex); });
  CHECK(mutex.try_lock());
  mutex.unlock();
}

TEST_CASE("a biased shared mutex keeps who shares it from who has it alone") {
  struct One : Guarded<BiasedSharedMutex> {
    int seen_apart = 0;
  };
  std::vector<One> all(many);
  for (One& one : all) const std::shared_lock lock(one.mutex);
  by_two(
      all,
      [](One& one) {
        for (int n = 0; n < rounds; n++) {
          const std::shared_lock lock(one.mutex);
          const int seen = one.sum;
          asm volatile("" ::: "memory");
          one.seen_apart += one.sum != seen;
        }
      },
      [](One& one) {
        const std::lock_guard lock(one.mutex);
        for (int n = 0; n < rounds; n++) one.add();
      });
  size_t apart = 0;
  for (const One& one : all) apart += one.seen_apart != 0;
  CHECK(apart == 0);
}

TEST_CASE("a biased shared mutex is shared while somebody waits for its owner") {
  BiasedSharedMutex mutex;
  mutex.lock_shared();
  std::atomic<bool> has_it{false};
  std::thread alone([&] {
    mutex.lock();
    has_it = true;
    mutex.unlock();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  on_another_thread([&] { const std::shared_lock there(mutex); });  // does not wait
  CHECK_FALSE(has_it);
  mutex.unlock_shared();
  alone.join();
  CHECK(has_it);
}

TEST_CASE("the owner of a biased shared mutex takes it alone, too") {
  BiasedSharedMutex mutex;
  int sum = 0;
  {
    const std::lock_guard lock(mutex);
    sum++;
  }
  constexpr int many_rounds = 2000;
  std::thread other([&] {
    for (int n = 0; n < many_rounds; n++) {
      const std::lock_guard lock(mutex);
      sum++;
    }
  });
  for (int n = 0; n < many_rounds; n++) {
    {
      const std::shared_lock lock(mutex);
    }
    const std::lock_guard lock(mutex);
    sum++;
  }
  other.join();
  CHECK(sum == 1 + 2 * many_rounds);
}
