#include "backends/cpu/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace quern::cpu {

namespace {
using std::filesystem::path;

uint32_t in_affinity() {
  // The kernel refuses sets that are too small for the machine.
  for (size_t most = 1024; most <= (1u << 20); most *= 2) {
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(most),
                                                         [](cpu_set_t* s) { CPU_FREE(s); });
    const size_t bytes = CPU_ALLOC_SIZE(most);
    if (set && sched_getaffinity(0, bytes, set.get()) == 0)
      return uint32_t(CPU_COUNT_S(bytes, set.get()));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

/// Time a period in processors; 0 where the files do not limit it.
double quota_of(const path& group) {
  double quota = 0, period = 0;
  if (std::ifstream(group / "cpu.max") >> quota >> period && period > 0) return quota / period;
  if (std::ifstream(group / "cpu.cfs_quota_us") >> quota && quota > 0 &&
      std::ifstream(group / "cpu.cfs_period_us") >> period && period > 0)
    return quota / period;
  return 0;
}
}  // namespace

uint32_t quota(const path& membership, const path& root) {
  double least = 0;
  auto look_at = [&](const path& group) {
    if (double q = quota_of(group); q > 0) least = least > 0 ? std::min(least, q) : q;
  };
  // A line is number:controllers:/group; no controllers in version 2.
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    path mount = root;
    if (controllers.find(",cpu,") != std::string::npos)
      mount /= "cpu";
    else if (controllers != ",,")
      continue;
    for (path group = path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      look_at(mount / group);
      if (group.empty()) break;
    }
  }
  return uint32_t(std::ceil(least));
}

uint32_t processors() {
  const uint32_t affinity = in_affinity(), limit = quota("/proc/self/cgroup", "/sys/fs/cgroup");
  return limit > 0 ? std::min(affinity, limit) : affinity;
}

}  // namespace quern::cpu
