#include "backends/cpu/parallel.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/catch.h"

using quern::cpu::parallel_for;

TEST_CASE("parallel_for runs every index once") {
  for (uint64_t count : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    parallel_for(count, [&](uint64_t k) { runs[k]++; });
    for (auto& r : runs) CHECK(r == 1);
  }
}

TEST_CASE("parallel_for is safe from several threads and inside itself") {
  std::atomic<int> total{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; round++)
        parallel_for(8, [&](uint64_t) { parallel_for(5, [&](uint64_t) { total++; }); });
    });
  for (auto& t : threads) t.join();
  CHECK(total == 4 * 20 * 8 * 5);
}
