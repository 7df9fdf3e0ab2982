#include "backends/cpu/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "backends/cpu/openmp.h"
#include "backends/cpu/processors.h"
#include "quern/error.h"

namespace quern::cpu {

namespace {
constexpr int max_threads = 4096;

std::string_view setting(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

/// What QUERN_THREADS says; 0 where it is not set, negative where it is no number of threads.
int wished_threads() {
  const std::string_view wish = setting("QUERN_THREADS");
  if (wish.empty()) return 0;
  int n = 0;
  auto [end, error] = std::from_chars(wish.begin(), wish.end(), n);
  return error == std::errc() && end == wish.end() && n >= 1 && n <= max_threads ? n : -1;
}

bool on_openmp() {
  static const bool wished = setting("QUERN_CPU_THREADING") == "openmp" && openmp().present();
  return wished;
}

/// Lives until the process ends, as what is destroyed last may still launch; its helpers end with
/// the static objects of this library, so that they do not outlive its code.
Pool& pool() {
  static Pool* const only = [] {
    pthread_atfork(nullptr, nullptr, [] { pool().forget_helpers(); });
    return new Pool(uint32_t(worker_count() - 1));
  }();
  static const struct Stop {
    ~Stop() { only->stop(); }
  } stop;
  return *only;
}

void run_on_openmp(uint64_t count, Body body, void* context) {
  const uint32_t threads = uint32_t(std::min<uint64_t>(count, uint64_t(worker_count())));
  Loop loop(threads);
  loop.publish(count, threads, body, context);
  auto work = [](void* at) { static_cast<Loop*>(at)->work(uint32_t(openmp().thread_number())); };
  openmp().parallel(work, &loop, threads, 0);
}
}  // namespace

int worker_count() {
  static const int count = [] {
    if (int n = wished_threads(); n > 0) return n;
    return on_openmp() ? openmp().max_threads() : int(processors());
  }();
  return count;
}

void expect_thread_settings() {
  if (wished_threads() < 0)
    throw Error("QUERN_THREADS is '" + std::string(setting("QUERN_THREADS")) +
                "'; it takes a number of threads from 1 to " + std::to_string(max_threads));
  const std::string_view threading = setting("QUERN_CPU_THREADING");
  if (threading == "openmp" && !openmp().present())
    throw Error(
        "QUERN_CPU_THREADING is 'openmp', but this program has no OpenMP runtime: it is "
        "not linked with one");
  if (!threading.empty() && threading != "openmp" && threading != "pool")
    throw Error("QUERN_CPU_THREADING is '" + std::string(threading) +
                "'; it takes 'pool' or 'openmp'");
}

void parallel_for(uint64_t count, Waking waking, Body body, void* context) {
  const bool inside = openmp().in_parallel && openmp().in_parallel() != 0;
  if (count <= 1 || worker_count() == 1 || inside) {
    for (uint64_t k = 0; k < count; k++) body(context, k);
  } else if (on_openmp()) {
    run_on_openmp(count, body, context);
  } else {
    pool().run(count, waking, body, context);
  }
}

}  // namespace quern::cpu
