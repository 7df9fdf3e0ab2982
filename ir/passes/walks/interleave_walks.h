#pragma once
// Takes many iterations of a walk through its inner loops together, so that a back end can
// vectorise over the iterations: the inner loop of a matrix product, of all pairs or of a
// polynomial is a chain of dependent operations, its neighbours in the walk are independent of each
// other. Strip mining and loop interchange, unroll and jam (Wolfe, High Performance Compilers,
// 1996, chapter 9).
//
// Expects: level lowered, simplified, hoisted.
// Guarantees: a parallel_walk loop of the form that nest.h finds, for which it pays, becomes a loop
// over strips of at most target.strip iterations, fewer where they keep much. The code before an
// inner loop is run for each iteration of the strip, then that loop with each round, and whatever
// stands in it, run for the whole strip, and so on. What crosses is kept in slot arrays or, if it
// depends on the index alone, computed again; what iterations share, also of what loops carry, is
// computed once. Rounds of little code are taken four at a time. A branch that iterations read or
// update alike in is run where any of the strip's takes it; what others would have done there is
// left out or chosen away. Local variables have an element for each iteration. Contributions of the
// strip to a location that it shares are combined, in any order, and given in one atomic. Of sums,
// factors that the strip shares multiply what is given, and terms that stand before a loop are
// summed there, not in each of its rounds: adjoints of what all are compared with take a
// multiplication a round. Each iteration does what it did, in its order; only the order between
// iterations changes, which has no meaning. Short bodies are there three times: for whole strips,
// for what these leave over, and as they were for few iterations; others twice, without the last,
// and very long ones once. What a longer round reads of rows far apart is named in the one before
// (rows_ahead.h). Loops over what whole strips leave over, and over all strips of very long bodies,
// are `brief`. A loop over a strip has no more code than back ends make vectors of, and few
// updates: what is more goes to another one behind it. The task says how many iterations are worth
// a strip (Task::together), and how many are a whole one where that matters (Task::strip). Nothing
// changes where target.strip is 0. Linear in the code that it makes.
#include "quern/ir/lower.h"

namespace quern::ir {
void interleave_walks(Kernel& kernel, const TargetTraits& target);
}
