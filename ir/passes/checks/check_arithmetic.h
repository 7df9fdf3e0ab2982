#pragma once
// Checks of arithmetic in checked mode.
//
// Expects: level split, add_sites before; nothing in unchecked mode.
// Guarantees: an integer division or remainder follows a `check` that the divisor is not 0, a
// conversion of a float to an integer one that the value fits, but where the ranges of the values
// show that it holds; each names the site of its operation. The operation itself then gives its
// substitute as docs/semantics.md defines it.
// Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void check_arithmetic(Kernel& kernel);
}
