#pragma once
// Takes updates of elements out of a walk, so that a back end can vectorise the rest: atomics, and
// the plain ones of copies that privatise_atomics makes of them, keep a loop scalar
// however much arithmetic stands before them. Reverse sweeps end so, and particles that are spread
// to a grid (loop distribution: Wolfe, High Performance Compilers, 1996, 9.4).
//
// Expects: level lowered, simplified, hoisted.
// Guarantees: a parallel_walk loop becomes a loop over strips of at most target.strip iterations.
// In a strip, a parallel_walk does everything but the updates for each iteration; a second loop
// does the updates, iteration by iteration, each one's in their order. An update is an instruction
// nobody uses the results of: an atomic, or a branch that holds only atomics, accesses of slots and
// what they need. What updates need crosses in slot arrays or, if it depends on the index alone, is
// computed again, as are wide integers from the narrow ones that they are made of. Each iteration
// sees what it saw; only the order between iterations changes, which has no meaning. Where all
// updates are additions, three or more of which have one place, eight iterations at a time are asked
// whether that is the same in all, as where neighbours are of one camera or cell: then their terms
// are summed first, and added once (rule 10 of docs/semantics.md; not floats in strict mode). Then
// additions of an iteration to different places, or behind different branches on what all iterations
// share, have no order either. Only walks are
// taken whose rest holds no loop, call or other update, does not read what updates write, touches
// none of their slots, and has enough arithmetic to be worth the crossing; nothing changes where
// target.strip is 0. Quadratic in the number of accesses of a body.
#include "quern/ir/lower.h"

namespace quern::ir {
void defer_updates(Kernel& kernel, const TargetTraits& target);
}
