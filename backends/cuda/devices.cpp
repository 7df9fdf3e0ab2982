#include <algorithm>

#include "backends/cuda/api.h"
#include "backends/cuda/compiler.h"
#include "backends/gpu/driver.h"
#include "quern/error.h"

namespace quern::cuda {

namespace {

/// Chunks of a task with reductions; a serial task combines what each leaves.
constexpr uint32_t workers_per_multiprocessor = 64;
constexpr int oldest_architecture = 70;

/// The newest PTX that a driver takes: 7.0 came with CUDA 11.0, 7.8 with 11.8, then 8.0 with 12.0.
int newest_ptx(int driver_version) {
  int major = driver_version / 1000, minor = driver_version % 1000 / 10;
  return 70 + (major - 11) * 10 + std::min(minor, 9);
}

int number_of(const std::string& architecture) { return std::stoi(architecture.substr(3)); }

std::vector<gpu::Properties> usable(const gpu::Api& cuda, std::string& why) {
  std::vector<gpu::Properties> all = gpu::describe_all(cuda, why);
  std::erase_if(all, [&](const gpu::Properties& p) {
    bool old = number_of(p.architecture) < oldest_architecture;
    if (old) why = p.name + " is of compute capability below 7.0 (" + p.architecture + ")";
    return old;
  });
  return all;
}

}  // namespace

runtime::Target target_of(const gpu::Properties& device, int driver_version) {
  runtime::Target t = target_for(number_of(device.architecture), newest_ptx(driver_version));
  t.device = device.name;
  t.workers = device.multiprocessors * workers_per_multiprocessor;
  t.max_allocation = device.memory;
  return t;
}

std::vector<runtime::Target> devices(std::string& why_absent) {
  std::vector<runtime::Target> targets;
  try {
    std::string why;
    if (auto cuda = api(why)) {
      int version = 0;
      cuda->runtime_version(&version);
      for (const gpu::Properties& p : usable(*cuda, why)) targets.push_back(target_of(p, version));
    }
    if (targets.empty()) why_absent = why;
  } catch (const std::exception& e) {
    targets.clear();
    why_absent = e.what();
  }
  return targets;
}

std::unique_ptr<runtime::Driver> open(const runtime::Target& target,
                                      const runtime::Compiler& compiler,
                                      const runtime::Native::Handles* on) {
  std::string why;
  auto cuda = api(why);
  if (!cuda) throw Error("no CUDA device: " + why);
  for (const gpu::Properties& p : usable(*cuda, why))
    if (p.name == target.device)
      return on ? std::make_unique<gpu::Driver>(cuda, p, target, compiler, *on)
                : std::make_unique<gpu::Driver>(cuda, p, target, compiler);
  throw Error("the CUDA device '" + target.device + "' is not present any more");
}

}  // namespace quern::cuda
