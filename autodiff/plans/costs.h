#pragma once
// What it costs to compute something again, and to keep it, in additions: by these numbers is
// decided between the two.
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Of a call of the math library.
inline constexpr double library_call = 20;
/// Storing a byte and loading it again, far from the caches.
inline constexpr double to_keep_byte = 1.5;
/// What a launch is to be spared by a kernel of its own that keeps something: it takes longer to
/// launch, and long to compile.
inline constexpr double to_make_a_kernel = 32'000;

/// Rounds of a loop between constants; else -1.
int64_t constant_rounds(const ir::Inst* loop);

/// Iterations of a parallel loop between constants; else a usual number.
double iterations(const ir::Inst* parallel);

/// With what is inside; of loops whose bounds are no constants for a usual number of rounds.
double cost(const ir::Inst* inst);
double cost(const ir::Region* region);

}  // namespace quern::autodiff
