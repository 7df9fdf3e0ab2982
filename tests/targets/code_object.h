#pragma once
// What a code object of AMD's must hold.
#include <string>
#include <vector>

#include "quern/runtime/backend.h"

namespace quern::test {

/// Reads a code object as HIP's loader does, disassembles every kernel, and compares with the
/// kernel it was made of: architecture, a descriptor and metadata for each task with the argument
/// block or its address and four words, no undefined symbol, every word of code an instruction of
/// the architecture. What is wrong, or "".
std::string fault_of_code_object(const std::vector<std::byte>& code, const ir::Kernel& kernel,
                                 const runtime::Target& target);

}  // namespace quern::test
