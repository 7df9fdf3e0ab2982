#pragma once
// Turns the parallel loop of each range task into the walk of a chunk or of one thread's share.
//
// Expects: open_tasks has run; index arithmetic for addresses has been widened (lower_access).
// Guarantees: level lowered; no `parallel`, no builtin `iteration`. Chunked: iterations [begin,
// end) of the linear domain as one loop per row with i64 index and step 1 (kind parallel_walk, unless
// the body has such walks itself: the innermost loops are); rank 1 is that loop alone, others recover
// the first index once per chunk and step on from row to row. Element: a loop from `thread` to `end` by `threads` (kind thread_walk), each round
// recovering its index: in 32 bits, by multiplications with `reciprocal` and `next_reciprocal`;
// where the signature is wide, in 64 bits by divisions. With a bound, the loop ends at the domain's
// own number of iterations, and divides. Where the target starts a thread for each
// iteration, the signature is not wide and the threads of a block combine nothing, a test of
// `thread` takes the place of the loop (Task::once). Lanes: a loop over lanes in the same way,
// around one over a lane's iterations. Task::innermost is the last axis, or the fast axis of most
// fields of the task's rank; where iterations have an order (reductions, merged copies) always the last.
// `iteration` stays the row-major number. `convert` of an index to 64 bits is the 64-bit induction
// variable itself. The chunks of a task that another follows (Task::follows) also run those rows of
// it that depend on whole rows of the chunk alone, each behind the last of these; the task itself
// runs the others. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
/// The axis that a range task's rows lie along.
uint32_t innermost_axis(const Kernel& kernel, const Task& task);
void lower_loops(Kernel& kernel, const Signature& signature, const TargetTraits& target);
}  // namespace quern::ir
