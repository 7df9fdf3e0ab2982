#pragma once
// Gives a range task's body a place for what happens once per chunk or thread.
//
// Expects: level split, tasks not walked.
// Guarantees: `walk` is the target's; chunked for a task with reductions whose threads the target
// cannot combine. An element task with reductions whose order is fixed (deterministic or strict)
// has lanes. The body of a range task takes no arguments and holds the domain's bounds, one
// `parallel` over them, and loads of frame cells, which no iteration writes. The domain region
// itself stays as it was, for the host. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void open_tasks(Kernel& kernel, const TargetTraits& target);
/// The parallel loop of an opened range task.
Inst* parallel_of(const Task& task);
}  // namespace quern::ir
