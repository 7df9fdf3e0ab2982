#pragma once
// Folding, algebra, common subexpressions, structure with a known outcome, dead code.
//
// Expects: any level from structured on.
// Guarantees: the same meaning, bit for bit, the same errors in checked mode. Constants are folded
// through `evaluate`; equal pure instructions are shared where one dominates the other; branches on
// constants, loops that run no or one round, results and carried values that never change are
// resolved; small branches of cheap instructions become selects, which run what is `unasked`;
// dead_code has run.
// Each round walks the kernel once; at most three rounds.
#include "quern/ir/ir.h"

namespace quern::ir {
void simplify(Kernel& kernel);
/// The same of one root.
void simplify_root(Kernel& kernel, Region* root);
}  // namespace quern::ir
