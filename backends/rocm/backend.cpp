#include "backends/rocm/api.h"

namespace quern::rocm {

namespace {
std::unique_ptr<runtime::Driver> open_device(const runtime::Target& target) { return open(target); }
std::unique_ptr<runtime::Driver> join_device(const runtime::Target& target,
                                             const runtime::Native::Handles& on) {
  return open(target, &on);
}
}  // namespace

extern const runtime::Backend backend;
const runtime::Backend backend = {"rocm", 20, devices, open_device, join_device};

}  // namespace quern::rocm
