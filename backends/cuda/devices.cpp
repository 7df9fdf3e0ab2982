#include <algorithm>

#include "backends/cuda/api.h"
#include "backends/gpu/vendor.h"
#include "quern/error.h"

namespace quern::cuda {

namespace {

/// An architecture, and the oldest PTX from 7.0 on (CUDA 11.0) that knows it (PTX ISA, release
/// notes).
struct Row {
  int architecture, ptx;
};
constexpr Row rows[] = {{70, 70}, {75, 70}, {80, 70}, {86, 71}, {89, 78}, {90, 78}};

/// The newest PTX that a driver takes: 7.0 came with CUDA 11.0, 7.8 with 11.8, then 8.0 with 12.0.
int newest_ptx_of(int driver_version) {
  int major = driver_version / 1000, minor = driver_version % 1000 / 10;
  return 70 + (major - 11) * 10 + std::min(minor, 9);
}

int number_of(const std::string& architecture) { return std::stoi(architecture.substr(3)); }

const gpu::Vendor vendor = {"CUDA", api, [](const gpu::Api& cuda, const gpu::Properties& device) {
                              int version = 0;
                              cuda.runtime_version(&version);
                              return target_of(device, version);
                            }};

/// Operations of the math library: ptxas takes seconds for some ten thousand in one function.
constexpr uint32_t most_copied = 3000;

}  // namespace

runtime::Target target_for(int architecture, int newest_ptx) {
  const Row* best = nullptr;
  for (const Row& row : rows)
    if (row.architecture <= architecture && row.ptx <= newest_ptx) best = &row;
  if (!best)
    throw Error("compute capability " + std::to_string(architecture / 10) + "." +
                std::to_string(architecture % 10) + " is below 7.0, the oldest that Quern serves");
  runtime::Target target =
      gpu::target_of("cuda", "nvptx64-nvidia-cuda sm_" + std::to_string(best->architecture) +
                                 " +ptx" + std::to_string(best->ptx));
  target.traits.calls = true;  // reports of failed checks too
  target.traits.most_copied = most_copied;
  return target;
}

runtime::Target target_of(const gpu::Properties& device, int driver_version) {
  return gpu::target_of(target_for(number_of(device.architecture), newest_ptx_of(driver_version)),
                        device);
}

std::vector<runtime::Target> devices(std::string& why_absent) {
  return gpu::devices(vendor, why_absent);
}

std::unique_ptr<runtime::Driver> open(const runtime::Target& target,
                                      const runtime::Native::Handles* on) {
  return gpu::open(vendor, target, on);
}

}  // namespace quern::cuda
