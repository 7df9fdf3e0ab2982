// Compiled with OpenMP, where there is one: a program that lives in it.
#include <omp.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/parallel.h"
#include "tests/catch.h"

using quern::cpu::parallel_for;
using quern::cpu::Waking;

TEST_CASE("in a parallel region of OpenMP loops run on their callers alone") {
  std::atomic<int> runs{0}, elsewhere{0};
#pragma omp parallel num_threads(2)
  {
    const auto self = std::this_thread::get_id();
    for (int round = 0; round < 100; round++)
      parallel_for(50, Waking::at_once, [&](uint64_t) {
        runs++;
        if (std::this_thread::get_id() != self) elsewhere++;
      });
  }
  CHECK(runs == 2 * 100 * 50);
  CHECK(elsewhere == 0);
}

TEST_CASE("QUERN_CPU_THREADING=openmp runs loops on OpenMP's threads") {
  // The choice is made once in a process: this test starts itself with the two ways to a team of 3.
  if (!std::getenv("QUERN_CPU_THREADING")) {
    for (const std::string size : {"QUERN_THREADS", "OMP_NUM_THREADS"})
      CHECK(std::system(("exec env QUERN_CPU_THREADING=openmp " + size +
                         "=3 /proc/$PPID/exe 'QUERN_CPU_THREADING*' >/dev/null")
                            .c_str()) == 0);
    return;
  }
  std::atomic<int> inside{0};
  std::vector<std::atomic<int>> runs(1000);
  parallel_for(1000, Waking::late, [&](uint64_t k) {
    inside += omp_get_num_threads() == 3;
    runs[k]++;
  });
  CHECK(inside == 1000);
  for (auto& r : runs) CHECK(r == 1);
}
