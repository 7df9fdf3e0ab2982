#pragma once
// Splits the checks of checked mode off the walks that need none.
//
// Expects: level lowered; `hoist` has run, so that what the rounds of a walk share stands before
// it. Guarantees: a parallel_walk loop whose body asks `all in range before the loop, or in range
// here` becomes `if all in range: the same loop with those questions answered, else: the loop as it
// was`. `simplify` then removes the checks of the first, and a back end can vectorise it. At most
// two copies of a walk, whatever the number of questions; nothing in unchecked mode. Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void version_walks(Kernel& kernel);
}
