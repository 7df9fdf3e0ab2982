#include "backends/gpu/vendor.h"
#include "backends/rocm/api.h"
#include "quern/error.h"

namespace quern::rocm {

namespace {
const gpu::Vendor vendor = {
    "ROCm", api, [](const gpu::Api&, const gpu::Properties& device) { return target_of(device); }};

/// Of "gfx1030": the last two characters are the minor version and the stepping.
int major_version(const std::string& name) {
  const std::string number =
      name.starts_with("gfx") && name.size() >= 6 ? name.substr(3, name.size() - 5) : std::string();
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos)
    throw Error("'" + name + "' is no architecture of AMD's GPUs, such as gfx90a");
  return std::stoi(number);
}
}  // namespace

runtime::Target target_for(const std::string& architecture, Wave wave) {
  const std::string name = architecture.substr(0, architecture.find(':'));
  const bool either = major_version(name) >= 10;  // waves of 32 lanes came with RDNA
  if (!either && wave == Wave::lanes_32)
    throw Error("the architecture '" + name + "' has waves of 64 lanes only");
  const bool wide = either && wave == Wave::lanes_64;
  return gpu::target_of("rocm", "amdgcn-amd-amdhsa " + name + (wide ? " +wavefrontsize64" : " "));
}

runtime::Target target_of(const gpu::Properties& device) {
  return gpu::target_of(target_for(device.architecture), device);
}

std::vector<runtime::Target> devices(std::string& why_absent) {
  return gpu::devices(vendor, why_absent);
}

std::unique_ptr<runtime::Driver> open(const runtime::Target& target,
                                      const runtime::Native::Handles* on) {
  return gpu::open(vendor, target, on);
}

}  // namespace quern::rocm
