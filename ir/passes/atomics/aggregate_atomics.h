#pragma once
// Atomics on one location by all iterations become one a chunk or a block of threads.
//
// Expects: open_tasks has run.
// Guarantees: rule 10 of docs/semantics.md. Aggregated are add, mul, min, max, bit_and, bit_or and
// bit_xor whose result nobody uses and whose index is the same in every iteration, where all other
// accesses of the alias class are such atomics too, on one component all of one operation, and
// through several bindings all of one operation and type: they go to an accumulator of the chunk or
// thread, which is combined with the location by one atomic at the chunk's end, or, through
// `block_reduce`, at the block's; where no iteration came to them, by none. Not in checked mode,
// which names the iteration that failed; float sums and products not in strict mode; element tasks
// only where the target has block reductions, and without lanes. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void aggregate_atomics(Kernel& kernel, const TargetTraits& target);
}
