#include <algorithm>

#include "backends/cuda/api.h"
#include "backends/gpu/driver.h"
#include "quern/error.h"

namespace quern::cuda {

namespace {

/// Chunks of a task with reductions; a serial task combines what each leaves.
constexpr uint32_t workers_per_multiprocessor = 64;
constexpr int oldest_architecture = 60;  ///< whose atomics have scopes, and add doubles

/// Architectures that code is made for, and the oldest PTX that knows them (PTX ISA, release
/// notes). A newer device runs the code of the newest one here.
struct Row {
  int architecture, ptx;
};
constexpr Row rows[] = {{60, 70}, {61, 70}, {70, 70}, {75, 70},
                        {80, 70}, {86, 71}, {89, 78}, {90, 78}};

/// The newest PTX that a driver takes: 7.0 came with CUDA 11.0, 7.8 with 11.8, then 8.0 with 12.0.
int newest_ptx(int driver_version) {
  int major = driver_version / 1000, minor = driver_version % 1000 / 10;
  return 70 + (major - 11) * 10 + std::min(minor, 9);
}

int number_of(const std::string& architecture) { return std::stoi(architecture.substr(3)); }

std::string isa_of(int architecture, int driver_version) {
  Row best = rows[0];
  for (const Row& row : rows)
    if (row.architecture <= architecture && row.ptx <= newest_ptx(driver_version)) best = row;
  return "nvptx64-nvidia-cuda sm_" + std::to_string(best.architecture) + " +ptx" +
         std::to_string(best.ptx);
}

std::vector<gpu::Properties> usable(const gpu::Api& cuda, std::string& why) {
  std::vector<gpu::Properties> all = gpu::describe_all(cuda, why);
  std::erase_if(all, [&](const gpu::Properties& p) {
    bool old = number_of(p.architecture) < oldest_architecture;
    if (old) why = p.name + " is of compute capability below 6.0 (" + p.architecture + ")";
    return old;
  });
  return all;
}

}  // namespace

runtime::Target target_of(const gpu::Properties& device, int driver_version) {
  runtime::Target t;
  t.backend = "cuda";
  t.isa = isa_of(number_of(device.architecture), driver_version);
  t.device = device.name;
  t.key = std::hash<std::string>()(t.isa);
  t.traits.walk = ir::Task::element;
  t.traits.narrow_atomics = false;
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
                                      const runtime::Compiler& compiler) {
  std::string why;
  auto cuda = api(why);
  if (!cuda) throw Error("no CUDA device: " + why);
  for (const gpu::Properties& p : usable(*cuda, why))
    if (p.name == target.device) return std::make_unique<gpu::Driver>(cuda, p, target, compiler);
  throw Error("the CUDA device '" + target.device + "' is not present any more");
}

}  // namespace quern::cuda
