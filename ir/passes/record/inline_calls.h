#pragma once
// Replace every call by the body of what it calls: `call` (functions of the user), or `apply`
// (functions with a derivative of their own, which stay calls until differentiation is behind).
//
// Expects: level structured or later; functions end in `yield` and call each other without cycles
// (recording refuses recursion).
// Guarantees: no such calls, and none of the functions that they called. A slot of a function is zero
// at each call, as slots are at each execution of their instruction. What was applied has the location
// of where it was.
// Linear in the size of the result.
#include "quern/ir/ir.h"

namespace quern::ir {
void inline_calls(Kernel& kernel);
void inline_applied(Kernel& kernel);
}  // namespace quern::ir
