#pragma once
// Splits loops by where their updates go, so that a back end can vectorise them: rows of a matrix
// that are gone back through add to the adjoints of what all rows were multiplied with.
//
// Expects: level lowered, simplified, hoisted; target.strip is 0 or walks have been taken apart.
// Guarantees: a loop inside of an iteration that holds no other loop, call or more than 200
// operations, and in each of whose rounds a branch asks something from before the loop to say
// whether an update goes to a copy of the field (privatise_atomics), becomes `if all of it: the
// loop, its questions answered by yes, else if none of it: the loop, answered by no, else: the loop
// as it was`. The last only where there is more than one question; so there are three copies of a
// loop at most, and of loops of 4,000 operations in a task. `simplify` then removes what is not
// taken.
#include "quern/ir/lower.h"

namespace quern::ir {
void version_rounds(Kernel& kernel, const TargetTraits& target);
}
