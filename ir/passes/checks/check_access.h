#pragma once
// Bounds checks of checked mode.
//
// Expects: open_tasks has run, add_sites before; nothing in unchecked mode.
// Guarantees: an access of a field, or of an array by index, that is not provably in range follows
// a `check` of its site (index, axis, extent of the first axis that is out of range, and the first
// index there where the field is not based on 0; array: index, count) and happens only where the
// check holds; else a read or atomic yields 0 and nothing is written. Provable: by value ranges
// (ir/analysis/ranges.h), from the bounds of loops, guards, clamps, remainders.
// Where that depends on what is known before a loop (bounds and guards by parameters, extents of
// several fields, constant indices), one test before the outermost such loop tells whether all its
// rounds are in range, and the check is `that, or in range`. All accesses of a region share a test.
// Linear, but for the search of a proof, which is cut short.
#include "quern/ir/ir.h"

namespace quern::ir {
void check_access(Kernel& kernel);
}
