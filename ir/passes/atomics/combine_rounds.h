#pragma once
// Updates of one location by the rounds of a loop become one, behind the loop.
//
// Expects: bind has run, tasks not opened.
// Guarantees: rule 10 of docs/semantics.md. Combined are atomics with an identity whose results nobody
// uses and whose indices are made outside of the loop, float sums and products not in strict mode, where
// whatever else in the loop may touch the location is an update of the same kind: rounds combine their
// values in a slot, which promote_slots makes a carried value of. Behind the loop the location is updated
// if a round has come to it, so that nothing is touched that would not have been. Inner loops first.
// Checked mode is left alone, where each update may be out of range.
// As many as worth_carrying (facts.h) says. Linear, times that number.
#include "quern/ir/ir.h"

namespace quern::ir {
void combine_rounds(Kernel& kernel);
}
