#include "backends/cpu/parallel.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/processors.h"
#include "backends/llvm/sanitizer.h"
#include "tests/catch.h"

using quern::cpu::parallel_for;
using quern::cpu::Pool;
using quern::cpu::Waking;
using namespace std::chrono_literals;

namespace {
template <class F>
void run(Pool& pool, uint64_t count, Waking waking, const F& f) {
  auto body = [](void* context, uint64_t k) { (*static_cast<const F*>(context))(k); };
  pool.run(count, waking, body, const_cast<F*>(&f));
}

/// Did every k in [0, count) run once?
bool each_once(Pool& pool, uint64_t count, Waking waking) {
  std::vector<std::atomic<uint8_t>> runs(count);
  run(pool, count, waking, [&](uint64_t k) { runs[k].fetch_add(1, std::memory_order_relaxed); });
  for (auto& r : runs)
    if (r != 1) return false;
  return true;
}

void compute(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// A process that keeps a processor busy.
class Busy {
 public:
  Busy() : child_(fork()) {
    if (child_ != 0) return;
    for (volatile unsigned k = 0;;) k = k + 1;
  }
  ~Busy() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Busy(const Busy&) = delete;

 private:
  pid_t child_;
};

/// Exit status of f() in a child process, -1 where it has not ended within a minute.
template <class F>
int in_child(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
}  // namespace

TEST_CASE("parallel_for runs every index once") {
  for (uint64_t count : {0, 1, 2, 3, 7, 64, 1000})
    for (Waking waking : {Waking::late, Waking::at_once}) {
      std::vector<std::atomic<int>> runs(count);
      parallel_for(count, waking, [&](uint64_t k) { runs[k]++; });
      for (auto& r : runs) CHECK(r == 1);
    }
}

TEST_CASE("parallel_for is safe from several threads and inside itself") {
  std::atomic<int> total{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; round++)
        parallel_for(8, Waking::late, [&](uint64_t) {
          parallel_for(5, Waking::at_once, [&](uint64_t) { total++; });
        });
    });
  for (auto& t : threads) t.join();
  CHECK(total == 4 * 20 * 8 * 5);
}

TEST_CASE("a pool runs every index once, whatever its size and the machine's load") {
  const bool loaded = GENERATE(false, true);
  std::vector<std::unique_ptr<Busy>> busy;
  for (unsigned k = 0; loaded && k < quern::cpu::processors(); k++)
    busy.push_back(std::make_unique<Busy>());
  for (uint32_t helpers : {0u, 1u, 3u, 100u}) {
    Pool pool(helpers);
    for (int round = 0; round < 200; round++)
      for (uint64_t count : {0, 1, 2, 3, 17, 130})
        REQUIRE(each_once(pool, count, round % 2 ? Waking::late : Waking::at_once));
    // Behind the time in which helpers stay awake.
    std::this_thread::sleep_for(1ms);
    REQUIRE(each_once(pool, 1000, Waking::at_once));
  }
}

TEST_CASE("a pool takes more runs than a part counts claims") {
  Pool pool(2);
  for (uint64_t count : {(1ull << 24) - 1, 1ull << 24, (1ull << 24) + 1, (1ull << 25) + 12345})
    CHECK(each_once(pool, count, Waking::late));
}

TEST_CASE("many threads publish loops in one pool, more than it helps with at once") {
  Pool pool(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 12; t++)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 500; round++)
        if (!each_once(pool, uint64_t(1 + (round * 7 + t) % 40),
                       round % 3 ? Waking::late : Waking::at_once))
          wrong++;
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("helpers come to a long loop, woken late or at once") {
  for (Waking waking : {Waking::late, Waking::at_once}) {
    Pool pool(1);
    const auto self = std::this_thread::get_id();
    bool helped = false;
    for (int attempt = 0; attempt < 50 && !helped; attempt++) {
      std::this_thread::sleep_for(1ms);  // the helper falls asleep
      std::atomic<int> others{0};
      run(pool, 100, waking, [&](uint64_t) {
        if (std::this_thread::get_id() != self) others++;
        compute(100us);
      });
      helped = others > 0;
    }
    CHECK(helped);
  }
}

TEST_CASE("a caller waits for nobody who has begun nothing") {
  // The only helper is in a run of another thread's loop, and stays there.
  Pool pool(1);
  std::atomic<bool> inside{false}, go{false};
  std::atomic<std::thread::id> helper{};
  std::thread other([&] {
    const auto self = std::this_thread::get_id();
    while (!inside)
      run(pool, 2, Waking::at_once, [&](uint64_t) {
        if (std::this_thread::get_id() == self) return compute(200us);
        inside = true;
        while (!go) std::this_thread::sleep_for(100us);
      });
  });
  while (!inside) std::this_thread::yield();
  for (int round = 0; round < 100; round++) CHECK(each_once(pool, 50, Waking::at_once));
  go = true;
  other.join();
}

TEST_CASE("after a fork parent and child run loops, with helpers of their own") {
  Pool pool(2);
  CHECK(each_once(pool, 100, Waking::at_once));
  // The pool behind parallel_for hears of the fork by itself.
  std::atomic<int> total{0};
  auto count = [&] { parallel_for(64, Waking::at_once, [&](uint64_t) { total++; }); };
  count();
  auto child = [&] {
    pool.forget_helpers();
    for (int round = 0; round < 100; round++) {
      if (!each_once(pool, 100, Waking::at_once)) return 1;
      count();
    }
    return total == 64 * 101 ? 0 : 2;
  };
  CHECK(in_child(child) == 0);
  count();
  CHECK(total == 64 * 2);
}

TEST_CASE("a stopped pool runs loops on their callers, and stops once") {
  Pool fresh(2), used(2);
  CHECK(each_once(used, 100, Waking::at_once));
  for (Pool* pool : {&fresh, &used}) {
    pool->stop();
    CHECK(each_once(*pool, 100, Waking::at_once));
    pool->stop();
  }
}

TEST_CASE("helpers end with the library that their code is in") {
  if (quern::codegen::own_sanitizer == quern::codegen::Sanitizer::thread) {
    NOT_RUN("the thread sanitizer takes the helpers of a child process for its parent's");
    return;
  }
  auto threads = [] {
    auto tasks = std::filesystem::directory_iterator("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  auto child = [&] {
    setenv("QUERN_THREADS", "5", 1);
    const auto before = threads();
    for (int round = 0; round < 20; round++) {
      void* library = dlopen(QUERN_THREADS_MODULE, RTLD_NOW | RTLD_LOCAL);
      if (!library) return 1;
      auto* count_runs = reinterpret_cast<int (*)(int)>(dlsym(library, "count_runs"));
      if (count_runs(1000) != 1000 || threads() != before + 4) return 2;
      if (dlclose(library) != 0) return 3;
      // A joined thread stays in the list for a moment; one that has not ended stays for good.
      while (threads() != before) std::this_thread::sleep_for(100us);
      if (dlopen(QUERN_THREADS_MODULE, RTLD_NOW | RTLD_NOLOAD)) return 4;
    }
    return 0;
  };
  CHECK(in_child(child) == 0);
}

TEST_CASE("a pool without threads to be had runs loops on the caller") {
  // Every thread's stack would be larger than the address space left.
  auto child = [] {
    Pool pool(4);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t(1) << 50);
    if (pthread_setattr_default_np(&attributes) != 0) return 2;
    return each_once(pool, 100, Waking::at_once) ? 0 : 1;
  };
  CHECK(in_child(child) == 0);
}

TEST_CASE("helpers sleep while nothing is to be done") {
  Pool pool(3);
  CHECK(each_once(pool, 100, Waking::at_once));
  std::this_thread::sleep_for(20ms);
  auto used = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  };
  const double before = used();
  std::this_thread::sleep_for(200ms);
  CHECK(used() - before < 0.01);
}

TEST_CASE("a quota of processor time is the least of a group's and those around it") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("quern-quota-" + std::to_string(getpid()));
  auto write = [&](const fs::path& file, const std::string& text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  auto quota = [&](const std::string& membership) {
    write("membership", membership);
    return quern::cpu::quota(root / "membership", root);
  };
  CHECK(quota("0::/outer/inner\n") == 0);
  write("outer/inner/cpu.max", "max 100000\n");
  CHECK(quota("0::/outer/inner\n") == 0);
  write("outer/cpu.max", "250000 100000\n");
  CHECK(quota("0::/outer/inner\n") == 3);
  write("outer/inner/cpu.max", "50000 100000\n");
  CHECK(quota("0::/outer/inner\n") == 1);
  CHECK(quota("0::/outer\n") == 3);
  CHECK(quota("0::/\n") == 0);
  // A container sees its own group at the root.
  write("cpu.max", "400000 100000\n");
  CHECK(quota("0::/somewhere/else\n") == 4);
  // Version 1.
  write("cpu/job/cpu.cfs_quota_us", "200000\n");
  write("cpu/job/cpu.cfs_period_us", "100000\n");
  CHECK(quota("3:cpuset:/\n2:cpu,cpuacct:/job\n") == 2);
  write("cpu/job/cpu.cfs_quota_us", "-1\n");
  CHECK(quota("3:cpuset:/\n2:cpu,cpuacct:/job\n") == 0);
  CHECK(quota("no line of this kind\n") == 0);
  CHECK(quern::cpu::processors() >= 1);
  fs::remove_all(root);
}
