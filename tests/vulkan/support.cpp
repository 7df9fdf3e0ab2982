#include "tests/vulkan/support.h"

namespace quern::test {

std::shared_ptr<vulkan::Instance> instance() {
  driver("vulkan");
  std::string why;
  return vulkan::Instance::shared(why);
}

runtime::Driver& staging_driver() {
  // Never destroyed: at exit the validation layer is gone before a static here.
  static runtime::Driver& opened = *[] {
    std::string why;
    vulkan::Adapter first = vulkan::adapters(*instance(), why).at(0);
    first.mapped = false;
    return new vulkan::Driver(instance(), first);
  }();
  return opened;
}

}  // namespace quern::test
