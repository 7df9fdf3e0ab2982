#pragma once
// Runs a walk as if its rare branches were never taken, then again those iterations that take one:
// so that a back end can vectorise the usual way. Cheaper than defer_rare_branches, for walks whose
// iterations may be repeated.
//
// Expects: level lowered, simplified, hoisted.
// Guarantees: a parallel_walk loop without carried values whose body has `if.rarely` among its own
// instructions, which writes only where it does not read, with no other effect, and to places that
// do not depend on the branches' results, becomes a loop over strips of target.strip iterations. In
// a strip, the body runs for each iteration with the second, pure region in place of each such
// branch; then, if a condition held for any of them, the whole body runs again for those. What the
// first run wrote there is written over. Walks with slots of their own stay as they are; nothing
// changes where target.strip is 0. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void replay_rare_branches(Kernel& kernel, const TargetTraits& target);
}
