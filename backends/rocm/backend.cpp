#include "backends/rocm/api.h"
#include "backends/rocm/compiler.h"

namespace quern::rocm {

namespace {
std::unique_ptr<runtime::Driver> open_device(const runtime::Target& target) {
  static const Compiler compiler;  // outlives every driver: it has no destructor to run
  return open(target, compiler);
}
}  // namespace

extern const runtime::Backend backend;
const runtime::Backend backend = {"rocm", 20, devices, open_device};

}  // namespace quern::rocm
