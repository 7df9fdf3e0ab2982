#pragma once
// Bounds checks of checked mode.
//
// Expects: open_tasks has run, add_sites before; nothing in unchecked mode.
// Guarantees: an access of a field, or of an array by index, that is not provably in range follows
// a `check` of its site (index, axis, extent of the first axis that is out of range, and the first
// index there where the field is not based on 0; array: index, count) and happens only where the
// check holds; else a read or atomic yields 0 and nothing is written. Provable: the index is a
// loop's index plus a constant, the loop starts at a constant that makes it >= 0 (or at the axis's
// first index plus one that keeps it above) and ends at this very extent (or end) plus a constant
// that keeps it below.
// Where the loop's bounds decide, but only at run time, one test before the loop tells whether all
// its rounds are in range, and the check is `that, or in range`.
// Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void check_access(Kernel& kernel);
}
