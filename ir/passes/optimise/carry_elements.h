#pragma once
// Elements of fields that each round of a loop updates are carried by the loop: read in front of it,
// written behind it.
//
// Expects: bind and forward have run, tasks not opened.
// Guarantees: rules 3, 8 and 9 of docs/semantics.md. Carried is an element whose indices are made
// outside of the loop, that each round stores to, or each one by the same conditions, made outside of
// the loop, too, and to which nothing else in the loop may lead (Effects::may_change): it stands in a
// slot, which promote_slots makes a carried value of. A loop that may have no round reads and writes
// behind a question. Values whose storage is of another type are left alone, as is checked mode, where
// the access may be out of range, and loops with a break (while_). Inner loops first.
// As many as worth_carrying (facts.h) says. Linear, times that number.
#include "quern/ir/ir.h"

namespace quern::ir {
void carry_elements(Kernel& kernel);
}
