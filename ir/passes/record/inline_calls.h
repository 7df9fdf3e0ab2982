#pragma once
// Replaces every call by the body of what it calls.
//
// Expects: level structured or later; functions end in `yield` and call each other without cycles
// (recording refuses recursion).
// Guarantees: no calls, no callees. A slot of a function is zero at each call, as slots are at each
// execution of their instruction.
// Linear in the size of the result.
#include "quern/ir/ir.h"

namespace quern::ir {
void inline_calls(Kernel& kernel);
}
