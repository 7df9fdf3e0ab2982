#include "backends/gpu/vendor.h"
#include "backends/rocm/api.h"
#include "backends/rocm/compiler.h"

namespace quern::rocm {

namespace {
const gpu::Vendor vendor = {
    "ROCm", api, [](const gpu::Api&, const gpu::Properties& device) { return target_of(device); }};
}  // namespace

runtime::Target target_of(const gpu::Properties& device) {
  return gpu::target_of(target_for(device.architecture), device);
}

std::vector<runtime::Target> devices(std::string& why_absent) {
  return gpu::devices(vendor, why_absent);
}

std::unique_ptr<runtime::Driver> open(const runtime::Target& target,
                                      const runtime::Compiler& compiler,
                                      const runtime::Native::Handles* on) {
  return gpu::open(vendor, target, compiler, on);
}

}  // namespace quern::rocm
