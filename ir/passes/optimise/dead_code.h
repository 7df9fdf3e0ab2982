#pragma once
// Removes what has no effect.
//
// Expects: level structured or later, no exits.
// Guarantees: every instruction left has an effect, may fail in checked mode, or feeds one that
// does; unused results and carried values, constructs without effect, slots nobody reads and the
// puts and reductions into them are gone. Loops are taken to end.
// Linear. Returns whether anything changed.
#include "quern/ir/ir.h"

namespace quern::ir {
bool dead_code(Kernel& kernel);
/// The same of one root.
bool dead_code(Kernel& kernel, Region* root);
}  // namespace quern::ir
