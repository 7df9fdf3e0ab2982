#include "backends/vulkan/driver.h"
#include "quern/error.h"

namespace quern::vulkan {

namespace {

std::vector<runtime::Target> probe(std::string& why_absent) {
  std::vector<runtime::Target> targets;
  std::string why;
  try {
    if (auto instance = Instance::shared(why))
      for (const Adapter& a : adapters(*instance, why)) targets.push_back(a.target());
  } catch (const std::exception& e) {
    why = e.what();
  }
  if (targets.empty()) why_absent = why;
  return targets;
}

std::unique_ptr<runtime::Driver> open(const runtime::Target& target) {
  std::string why;
  auto instance = Instance::shared(why);
  if (!instance) throw Error("no Vulkan device: " + why);
  for (const Adapter& a : adapters(*instance, why))
    if (a.name == target.device) return std::make_unique<Driver>(instance, a);
  throw Error("the Vulkan device '" + target.device + "' is not present any more");
}

}  // namespace

extern const runtime::Backend backend;
// Below the CPU: Device::best() need not load any driver, and software Vulkan is slower than it.
const runtime::Backend backend = {"vulkan", 5, probe, open};

}  // namespace quern::vulkan
