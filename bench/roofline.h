#pragma once
// A model of the time that kernels take on GPUs that are not here, from counts and published
// figures. It predicts no measurement and bounds none; it is good for comparing two kernels that do
// the same.
//
// A kernel takes as long as the busiest of these would alone (Williams, Waterman and Patterson,
// "Roofline", CACM 2009): DRAM with the bytes that must move, the L1 caches with the sectors asked
// for, the load and store units with the requests of warps, of shared memory one for each pass, the
// schedulers with the warp instructions, the units for floats, for integers and for special
// functions with theirs. Assumed:
// - Caches are cold and large enough: DRAM sees each byte once. A run that comes again finds small
//   data in the L2 cache and is faster.
// - All units are busy all the time; launches, latency and atomics that collide cost nothing.
// - Moves and conversions of PTX cost nothing, as ptxas removes most; so do parameters, which are
//   operands of machine code. All else is an instruction each, though ptxas joins and splits some:
//   exact quotients and roots are one special function.
// - Integers and comparisons run on the units for integers alone, though those for floats take
//   multiplications of integers, too; f64 runs at the rate of f32.
#include <array>
#include <string>

#include "tests/gpu/ptx/machine.h"

namespace bench {

struct GpuFigures {
  const char* name;
  double bandwidth;  ///< of DRAM, bytes/s
  double multiprocessors, clock;
  double floats, integers, specials;  ///< warp instructions a cycle and multiprocessor
};

/// NVIDIA's: H100 (SXM), A100 (SXM, 80 GB), RTX 4090.
const std::array<GpuFigures, 3>& modelled_gpus();

struct Prediction {
  double seconds = 0;
  const char* by =
      "";  ///< the busiest: "DRAM", "L1", "load/store", "issue", "float", "integer", "special"
};
/// `bytes` are those that must move between DRAM and the chip; 0: not known, DRAM does not count.
Prediction predict(const GpuFigures& gpu, const quern::ptx::Counts& counts, double bytes);

}  // namespace bench
