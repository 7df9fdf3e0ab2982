#include "backends/rocm/api.h"

namespace quern::rocm {

extern const runtime::Backend backend;
const runtime::Backend backend = {
    "rocm", 20, devices, [](const runtime::Target& target) { return open(target); },
    [](const runtime::Target& target, const runtime::Native::Handles& on) {
      return open(target, &on);
    }};

}  // namespace quern::rocm
