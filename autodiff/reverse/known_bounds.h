#pragma once
// Bounds of loops that are known before the parallel loop that those stand in.
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Computes in front of a parallel loop of the kernel's body what bounds of loops in it are made of, where
/// that is no element and nothing of the iteration's own: extents, say. So all iterations have as many
/// rounds, and that shows (replay.h). Of a kernel at level structured.
void compute_bounds_before(ir::Kernel& kernel);

}  // namespace quern::autodiff
