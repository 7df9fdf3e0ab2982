#pragma once
// Has a loop over what the loop before it computes run behind that one, row by row, as long as the
// rows are in a cache: "shift-and-peel" (Manjikian and Abdelrahman, Fusion of Loops for Parallelism
// and Locality, IEEE Trans. Parallel and Distributed Systems 8(2), 1997).
//
// Expects: level opened, atomics and reductions as open_tasks leaves them.
// Guarantees: a chunked task follows (Task::follows) the one that the schedule launches right before
// it where
//   - both run over one domain of two or three axes, of which the last is walked innermost;
//   - neither can fail or report, the second only loads and stores, and it reads no result of the
//     first's reductions;
//   - they touch a field in common, and of any element that both access, one of them writing, it is
//     known along each axis but the last how far apart their iterations are; the first updates none
//     of these by atomics, whose chunks may keep what they add until all are done.
// `reach` says how far at most. lower_loops has the first task's chunks run what that allows; the
// task itself runs the rest. Not in checked mode, nor where a sum has an order, whose chunks are
// short, nor where the second is long.
// Quadratic in the accesses of the two tasks, of which there are 64 each at most.
#include "quern/ir/lower.h"

namespace quern::ir {
void follow_tasks(Kernel& kernel);
}
