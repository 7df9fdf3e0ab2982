#include "backends/cpu/host.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/TargetParser/Host.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "backends/cpu/parallel.h"
#include "backends/llvm/toolchain.h"

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

/// Sorted, so that equal machines have equal texts.
std::string feature_text() {
  std::vector<std::string> list;
  for (const auto& f : llvm::sys::getHostCPUFeatures())
    list.push_back((f.second ? "+" : "-") + f.first().str());
  std::ranges::sort(list, {}, [](const std::string& s) { return s.substr(1); });
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : ",") + one;
  return text;
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
  const codegen::Isa isa{llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(),
                         feature_text()};
  runtime::Target target = codegen::target("cpu", isa);
  target.device = device_name();
  target.workers = uint32_t(worker_count());
  target.traits.stoppable = true;
  target.traits.lanes = 256;  // a slot array of f32 takes 1 KB: several fit the first-level cache
  target.traits.calls = true;
  target.traits.half_conversions = target.isa.find("+f16c") != std::string::npos;
  target.max_allocation = memory_bytes();
  target.host_addresses = true;
  return target;
}

}  // namespace quern::cpu
