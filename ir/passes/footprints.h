#pragma once
// What each task touches of each field, as far as the indices tell.
//
// Expects: level split, slots promoted and simplified, so that index arithmetic is visible.
// Guarantees: Task::footprints has one entry per field, component, access and atomic operator
// that occurs in the body. `offset`: every such access has index k = iteration index k + c with
// lo[k] <= c <= hi[k]; `affine`: every index is a linear function, with constant coefficients, of
// the iteration's indices and values that are the same in all iterations; else `unknown`.
// Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void footprints(Kernel& kernel);
}
