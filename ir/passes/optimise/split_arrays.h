#pragma once
// Local arrays whose elements are all named by constants become a slot for each element, which
// promote_slots makes values of. So do short ones of which a few accesses compute their element: such
// an access chooses among all of them, which is done by lanes of vectors and in registers, where
// memory is neither.
//
// Expects: level structured or later.
// Guarantees: a slot of several elements is left only where an access of it names its element by a
// constant that is out of range, or computes it: in checked mode, in a loop that the slot is made
// outside of, or where it would choose more than `most_choices` times in all.
// Linear in instructions, elements and choices.
#include "quern/ir/ir.h"

namespace quern::ir {
void split_arrays(Kernel& kernel);
}
