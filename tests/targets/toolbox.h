#pragma once
// Kernels compiled for GPUs that need not be present.
#include <string>
#include <vector>

#include "quern/ir/lower.h"
#include "runtime/compile/compile.h"
#include "tools/gpus/gpus.h"

namespace quern::test {

/// The GPUs that a kernel is compiled for. Where QUERN_TARGETS is `all`, every one. Else a sample:
/// that at (h + QUERN_SAMPLE) modulo their number, where h is a hash of the kernel's text and
/// QUERN_SAMPLE a number, 0 where it is not set. So the kernels of a run spread over all GPUs, and
/// each meets the next one when the number goes up by one.
std::vector<const gpus::Gpu*> gpus_for(const ir::Kernel& kernel);
/// What is said of that in the output of a test program: which rule, and how many images each GPU
/// got.
std::string sampled();

/// Compiles a recording for the GPUs of its sample, judges PTX by what it flushes,
/// assembles it where there is a ptxas, and disassembles code objects. What went wrong, one line a
/// GPU; empty: nothing.
std::string compile_for_gpus(runtime::Recording& source, const ir::Signature& signature);

/// How many images compile_for_gpus has made.
struct Made {
  size_t kernels = 0, ptx = 0, assembled = 0, objects = 0;
};
Made made();
/// Of how many GPUs one kernel gets an image.
size_t gpus_of_a_kernel();

}  // namespace quern::test
