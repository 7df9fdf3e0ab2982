#include <algorithm>

#include "backends/gpu/driver.h"
#include "backends/rocm/api.h"
#include "backends/rocm/compiler.h"
#include "quern/error.h"

namespace quern::rocm {

namespace {
/// Chunks of a task with reductions; a serial task combines what each leaves.
constexpr uint32_t workers_per_multiprocessor = 64;
}  // namespace

runtime::Target target_of(const gpu::Properties& device) {
  runtime::Target t = target_for(device.architecture);
  t.device = device.name;
  t.workers = device.multiprocessors * workers_per_multiprocessor;
  t.max_allocation = device.memory;
  return t;
}

std::vector<runtime::Target> devices(std::string& why_absent) {
  std::vector<runtime::Target> targets;
  try {
    std::string why;
    if (auto hip = api(why))
      for (const gpu::Properties& p : gpu::describe_all(*hip, why)) targets.push_back(target_of(p));
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
  auto hip = api(why);
  if (!hip) throw Error("no ROCm device: " + why);
  for (const gpu::Properties& p : gpu::describe_all(*hip, why))
    if (p.name == target.device)
      return on ? std::make_unique<gpu::Driver>(hip, p, target, compiler, *on)
                : std::make_unique<gpu::Driver>(hip, p, target, compiler);
  throw Error("the ROCm device '" + target.device + "' is not present any more");
}

}  // namespace quern::rocm
