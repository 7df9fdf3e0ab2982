#include "backends/cuda/api.h"
#include "backends/cuda/compiler.h"

namespace quern::cuda {

namespace {
std::unique_ptr<runtime::Driver> open_device(const runtime::Target& target) {
  static const Compiler compiler;  // outlives every driver: it has no destructor to run
  return open(target, compiler);
}
}  // namespace

extern const runtime::Backend backend;
const runtime::Backend backend = {"cuda", 30, devices, open_device};

}  // namespace quern::cuda
