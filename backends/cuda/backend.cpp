#include "backends/cuda/api.h"
#include "backends/cuda/compiler.h"

namespace quern::cuda {

namespace {
const Compiler& compiler() {
  static const Compiler c;  // outlives every driver: it has no destructor to run
  return c;
}
std::unique_ptr<runtime::Driver> open_device(const runtime::Target& target) {
  return open(target, compiler());
}
std::unique_ptr<runtime::Driver> join_device(const runtime::Target& target,
                                             const runtime::Native::Handles& on) {
  return open(target, compiler(), &on);
}
}  // namespace

extern const runtime::Backend backend;
const runtime::Backend backend = {"cuda", 30, devices, open_device, join_device};

}  // namespace quern::cuda
