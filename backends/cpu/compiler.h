#pragma once
#include "quern/runtime/compiler.h"

namespace quern::cpu {

/// Kernels to object files through LLVM, for the CPU that this process runs on: the image's code is
/// the object file.
const runtime::Compiler& compiler();

}  // namespace quern::cpu
