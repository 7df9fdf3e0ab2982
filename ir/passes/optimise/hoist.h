#pragma once
// Moves what does not change in a loop out of it.
//
// Expects: level structured or later.
// Guarantees: a pure instruction that cannot fail (in unchecked mode arithmetic is total, so that
// is all of it) and whose operands are made outside a loop or while_ stands before the outermost
// such loop; not past a parallel loop, whose inside is another task. Out of a branch only cheap
// instructions move, and out of a loop that may have no round no function with a derivative of its
// own while the kernel may yet be differentiated. In tasks, constants, `arg`s and `builtin`s stand
// at the top of the body. Reads of memory and slots stay where they are. What the program might not
// have run is `unasked` (ops.h). Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void hoist(Kernel& kernel);
}
