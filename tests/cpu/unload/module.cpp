// A loaded library with the threads of the CPU back end in it.
#include <atomic>

#include "backends/cpu/parallel.h"

extern "C" [[gnu::visibility("default")]] int count_runs(int count);
extern "C" int count_runs(int count) {
  std::atomic<int> runs{0};
  quern::cpu::parallel_for(uint64_t(count), quern::cpu::Waking::at_once, [&](uint64_t) { runs++; });
  return runs;
}
