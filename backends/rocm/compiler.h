#pragma once
#include "quern/runtime/compiler.h"

namespace quern::rocm {

/// Kernels to code objects through LLVM and lld. The image's code is a code object (a shared ELF
/// object with the kernels' metadata); target.isa says for which architecture. Throws Error where
/// this LLVM does not know it.
const runtime::Compiler& compiler();

}  // namespace quern::rocm
