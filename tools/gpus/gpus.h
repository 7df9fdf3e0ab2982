#pragma once
// GPUs that kernels are compiled for and that need not be present.
#include <string>
#include <vector>

#include "quern/runtime/compiler.h"

namespace quern::gpus {

/// A GPU as a kernel is compiled for it.
struct Gpu {
  std::string name;
  runtime::Target target;
  const runtime::Compiler* compiler = nullptr;
  std::string ptxas_arch;  ///< that ptxas assembles the PTX for; empty for AMD's
};

/// sm_70, sm_80, sm_90; gfx90a, gfx942, gfx1030, gfx1100 and gfx1201, gfx1030 in waves of 64 too.
const std::vector<Gpu>& all();

}  // namespace quern::gpus
