#include "backends/cuda/api.h"

namespace quern::cuda {

namespace {
std::unique_ptr<runtime::Driver> open_device(const runtime::Target& target) { return open(target); }
std::unique_ptr<runtime::Driver> join_device(const runtime::Target& target,
                                             const runtime::Native::Handles& on) {
  return open(target, &on);
}
}  // namespace

extern const runtime::Backend backend;
const runtime::Backend backend = {"cuda", 30, devices, open_device, join_device};

}  // namespace quern::cuda
