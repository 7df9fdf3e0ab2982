#include <algorithm>

#include "backends/cuda/api.h"
#include "backends/cuda/compiler.h"
#include "backends/gpu/vendor.h"

namespace quern::cuda {

namespace {

/// The newest PTX that a driver takes: 7.0 came with CUDA 11.0, 7.8 with 11.8, then 8.0 with 12.0.
int newest_ptx(int driver_version) {
  int major = driver_version / 1000, minor = driver_version % 1000 / 10;
  return 70 + (major - 11) * 10 + std::min(minor, 9);
}

int number_of(const std::string& architecture) { return std::stoi(architecture.substr(3)); }

const gpu::Vendor vendor = {"CUDA", api, [](const gpu::Api& cuda, const gpu::Properties& device) {
                              int version = 0;
                              cuda.runtime_version(&version);
                              return target_of(device, version);
                            }};

}  // namespace

runtime::Target target_of(const gpu::Properties& device, int driver_version) {
  return gpu::target_of(target_for(number_of(device.architecture), newest_ptx(driver_version)),
                        device);
}

std::vector<runtime::Target> devices(std::string& why_absent) {
  return gpu::devices(vendor, why_absent);
}

std::unique_ptr<runtime::Driver> open(const runtime::Target& target,
                                      const runtime::Compiler& compiler,
                                      const runtime::Native::Handles* on) {
  return gpu::open(vendor, target, compiler, on);
}

}  // namespace quern::cuda
