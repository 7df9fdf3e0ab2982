#pragma once
// What the benchmarks' kernels take of GPUs that need not be present.
#include "tools/gpus/record.h"

namespace bench {

/// Runs every benchmark once on the CPU and compiles each kernel that it launches for every GPU. A
/// task is called by benchmark, kernel of the benchmark in the order of their first launch, task
/// and GPU: "mpm3d sorted 0 1 sm_80". Of a benchmark with several sizes the first one counts.
quern::gpus::Recorded record_resources();

}  // namespace bench
