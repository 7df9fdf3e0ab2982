#pragma once
// What CUDA's and AMD's GPUs have in common for the code generator.
#include "backends/llvm/toolchain.h"

namespace quern::codegen {

/// Local arrays of a thread, in bytes: the driver takes them from the device's memory for each
/// thread that may be resident.
inline constexpr uint64_t max_gpu_local_bytes = 64 << 10;

/// The part of its description that the vendors share.
Machine gpu_machine(const Isa& isa, const llvm::TargetMachine& machine);

/// LLVM 19 takes `m < 0 ? m : 0` for a minimum, whose instruction gives -0 for a -0. A comparison
/// that chooses between what it compares, two numbers that may be zeros, chooses bits afterwards.
void keep_zeros_of_choices(llvm::Module& module);

}  // namespace quern::codegen
