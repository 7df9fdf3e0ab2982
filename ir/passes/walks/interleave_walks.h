#pragma once
// Takes many iterations of a walk through its inner loops together, so that a back end can vectorise
// over the iterations: the inner loop of a matrix product or of all pairs is a chain of dependent
// additions, its neighbours in the walk are independent of each other.
//
// Expects: level lowered, simplified, hoisted.
// Guarantees: a parallel_walk loop without carried values whose body is straight code around inner
// loops of straight code with bounds that all iterations share, in which neighbouring
// iterations touch the same or neighbouring elements, becomes a loop over strips of
// target.strip iterations: the code before an inner loop for each, then that loop with each round run
// for the whole strip, and so on. What crosses is kept in slot arrays or, if it
// depends on the index alone, computed again. Each iteration does what it did, in its order; only
// the order between iterations changes, which has no meaning. Inner loops of few constant rounds
// and loops with atomics stay as they are; nothing changes where target.strip is 0.
// Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void interleave_walks(Kernel& kernel, const TargetTraits& target);
}
