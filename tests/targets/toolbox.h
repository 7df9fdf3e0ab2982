#pragma once
// Kernels compiled for GPUs that need not be present.
#include <string>

#include "quern/ir/lower.h"
#include "runtime/compile/compile.h"

namespace quern::test {

/// Compiles a recording for each GPU, judges PTX by what it flushes, assembles it where there is a
/// ptxas, and disassembles code objects. What went wrong, one line a GPU; empty: nothing.
std::string compile_everywhere(runtime::Recording& source, const ir::Signature& signature);

/// How many images compile_everywhere has made.
struct Made {
  size_t kernels = 0, ptx = 0, assembled = 0, objects = 0;
};
Made made();

}  // namespace quern::test
