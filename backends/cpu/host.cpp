#include "backends/cpu/host.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "backends/cpu/isa.h"
#include "backends/cpu/parallel.h"

namespace quern::cpu {

namespace {
std::string device_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    size_t at = line.find(':');
    if (at != std::string::npos && at + 2 < line.size()) return line.substr(at + 2);
  }
  return "CPU";
}

/// What the machine has, or the container's share of it.
uint64_t memory_bytes() {
  uint64_t bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t limit = 0;
    if (std::ifstream(path) >> limit) bytes = std::min(bytes, limit);
  }
  return bytes;
}
}  // namespace

runtime::Target host_target() {
  runtime::Target target;
  target.backend = "cpu";
  target.isa = host_isa();
  target.device = device_name();
  target.workers = uint32_t(worker_count());
  target.traits.stoppable = true;
  target.traits.strip = 256;  // a slot array of f32 takes 1 KB: several fit the first-level cache
  target.traits.calls = true;
  target.traits.most_copied = 2000;  // behind a call, vectors come back from memory
  target.traits.half_conversions = has_extension(target.isa, "f16c");
  target.max_allocation = memory_bytes();
  target.host_addresses = true;
  return target;
}

bool runs_on(const std::string& code, const std::string& machine) {
  if (!code.starts_with("x86-64")) return code == machine;
  std::istringstream words(code);
  for (std::string word; words >> word;)
    if ((machine + " ").find(word + " ") == std::string::npos) return false;
  return true;
}

}  // namespace quern::cpu
