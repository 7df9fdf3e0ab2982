#pragma once
// What compiled kernels take of a GPU.
#include <optional>

#include "quern/ir/ir.h"
#include "tools/gpus/code_object.h"
#include "tools/gpus/gpus.h"

namespace quern::gpus {

/// One task's: by ptxas and the size of its machine code on NVIDIA's GPUs, by the code object's
/// metadata and its disassembly on AMD's.
struct Resources {
  int64_t registers = 0;                ///< 32-bit, a lane
  int64_t spilled_bytes = 0;            ///< a lane, stored
  int64_t shared_bytes = 0;             ///< a block
  int64_t instructions = 0;             ///< of machine code; NVIDIA's padding counts
  std::optional<Classes> classes = {};  ///< of AMD's code
  auto operator<=>(const Resources&) const = default;
};

/// Of each task of a kernel that is lowered for the GPU's target. Empty for NVIDIA's GPUs where
/// there is no ptxas. Throws Error with the assembler's words where it refuses the code.
std::vector<Resources> resources(const Gpu& gpu, const ir::Kernel& lowered);

}  // namespace quern::gpus
