#pragma once
// Each chunk or thread reduces into its own partial values, which are combined at its end.
//
// Expects: open_tasks has run.
// Guarantees: no `reduce`. Element walk: an accumulator a thread; at its end `block_reduce`, and
// the first thread of each block combines the block's value with the frame cell in one `rmw`.
// Chunked walk: a buffer is declared, whose element c has partial r of chunk c as component r. A
// serial task that combines them into the frame cells follows each launch of the task in the
// schedule; their number is its `end`.
// A task with lanes: partial r of lane t lies in row t (abi.h). A combine step, which makes one row
// of them all, and a serial task, which combines the last of its `end` rows with the frame cells,
// follow. By default one accumulator a chunk, float sums and products marked `reassociate`.
// Deterministic (asked for, or strict): chunks of 1,024 iterations; iteration k of a chunk goes to
// partial k % 32 in order, the 32 are combined by halving; chunk values likewise, level by level in
// place, until one is left; then variable = old value op that one. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void privatise_reductions(Kernel& kernel, const TargetTraits& target);
}
