// Mutexes that one thread takes by plain loads and stores until another one comes.
#include "quern/runtime/biased_mutex.h"

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "tests/catch.h"

using namespace quern::runtime;

namespace {

template <class F>
void on_another_thread(F f) {
  std::thread(f).join();
}

/// Two threads that wait for each other before each mutex, so that one revokes what the other one takes.
constexpr int mutexes = 400, rounds = 2000;

template <class F>
void by_two(F f) {
  for (int k = 0; k < mutexes; k++) {
    std::atomic<int> ready{0};
    const auto at_once = [&](auto run) {
      ready++;
      while (ready < 2) continue;
      run();
    };
    f(at_once);
  }
}

}  // namespace

TEST_CASE("a biased mutex keeps two threads apart while it changes hands") {
  by_two([](auto at_once) {
    BiasedMutex mutex;
    int sum = 0;  // plain: what both add would be lost
    const auto add = [&](int times) {
      for (int n = 0; n < times; n++) {
        const std::lock_guard lock(mutex);
        sum++;
      }
    };
    add(1);  // this thread owns it
    std::thread other([&] { at_once([&] { add(rounds); }); });
    at_once([&] { add(rounds); });
    other.join();
    REQUIRE(sum == 1 + 2 * rounds);
  });
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

TEST_CASE("a biased shared mutex is shared by threads, and taken by one alone") {
  BiasedSharedMutex mutex;
  {
    const std::shared_lock here(mutex);
    on_another_thread([&] { const std::shared_lock there(mutex); });  // does not wait
  }
  by_two([](auto at_once) {
    BiasedSharedMutex one;
    int seen = 0, written = 0;
    {
      const std::shared_lock lock(one);
    }  // this thread owns it
    std::thread other([&] {
      at_once([&] {
        for (int n = 0; n < rounds; n++) {
          const std::lock_guard lock(one);
          seen = ++written;
        }
      });
    });
    int apart = 0;
    at_once([&] {
      for (int n = 0; n < rounds; n++) {
        const std::shared_lock lock(one);
        apart += seen != written;
      }
    });
    other.join();
    REQUIRE(apart == 0);
    REQUIRE(written == rounds);
  });
}

TEST_CASE("the owner of a biased shared mutex takes it alone, too") {
  BiasedSharedMutex mutex;
  int sum = 0;
  {
    const std::lock_guard lock(mutex);
    sum++;
  }
  std::thread other([&] {
    for (int n = 0; n < rounds; n++) {
      const std::lock_guard lock(mutex);
      sum++;
    }
  });
  for (int n = 0; n < rounds; n++) {
    {
      const std::shared_lock lock(mutex);
    }
    const std::lock_guard lock(mutex);
    sum++;
  }
  other.join();
  CHECK(sum == 1 + 2 * rounds);
}
