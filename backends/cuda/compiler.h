#pragma once
#include "quern/runtime/compiler.h"

namespace quern::cuda {

/// Kernels to PTX through LLVM. The image's code is PTX text, which the driver compiles for its
/// device; target.isa says for which architecture and version of PTX.
const runtime::Compiler& compiler();

}  // namespace quern::cuda
