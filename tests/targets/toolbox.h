#pragma once
// Kernels compiled for GPUs that need not be present.
#include <optional>
#include <string>
#include <vector>

#include "quern/runtime/backend.h"

namespace quern::test {

/// A GPU as a kernel is compiled for it.
struct Gpu {
  std::string name;
  runtime::Target target;
  const runtime::Compiler* compiler = nullptr;
  std::string ptxas_arch;  ///< that ptxas assembles the PTX for
};

/// sm_70, sm_80, sm_90; gfx90a, gfx942, gfx1030, gfx1100 and gfx1201, gfx1030 in waves of 64 too.
const std::vector<Gpu>& gpus();

/// The program, where it is installed: PATH or the usual folder of the CUDA Toolkit.
const std::optional<std::string>& ptxas();

/// Compiles a kernel (level structured) for each GPU, assembles PTX where there is a ptxas, and
/// disassembles code objects. What went wrong, one line a GPU; empty: nothing.
std::string compile_everywhere(const ir::Kernel& kernel, const ir::Signature& signature);

/// How many images compile_everywhere has made.
struct Made {
  size_t kernels = 0, ptx = 0, assembled = 0, objects = 0;
};
Made made();

}  // namespace quern::test
