#pragma once
// Takes branches that hardly ever run out of a walk, so that a back end can vectorise the rest: a
// sine reduces huge arguments in such a branch.
//
// Expects: level lowered, simplified, hoisted.
// Guarantees: a parallel_walk loop whose body has `if.rarely` among its own instructions becomes a
// loop over strips of target.strip iterations. In a strip, the code up to the branch runs for each
// iteration together with the branch's second, pure region; then, if the condition held for any of
// them, its first region runs for those; then the code behind it, up to the next such branch. What
// crosses is kept in slot arrays or, if it depends on the index alone, computed again. Each
// iteration does what it did, in its order; only the order between iterations changes, which has
// no meaning. Walks with slots of their own, and those whose carried values are used before the
// last such branch, stay as they are; nothing changes where target.strip is 0. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void defer_rare_branches(Kernel& kernel, const TargetTraits& target);
}
