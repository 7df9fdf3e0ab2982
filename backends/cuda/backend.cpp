#include "backends/cuda/api.h"

namespace quern::cuda {

extern const runtime::Backend backend;
const runtime::Backend backend = {
    "cuda", 30, devices, [](const runtime::Target& target) { return open(target); },
    [](const runtime::Target& target, const runtime::Native::Handles& on) {
      return open(target, &on);
    }};

}  // namespace quern::cuda
