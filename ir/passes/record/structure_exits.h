#pragma once
// Turns break_, continue_ and return_ into conditions.
//
// Expects: level recorded, drop_unused_snapshots has run. `break_<n>` leaves the n innermost loops
// (loop, while_, parallel); `continue_<k>` leaves k loops and ends the iteration of the next;
// `return_` ends the kernel or function with its values. No exit leaves the condition of a
// while_; break_ and return_ do not cross a parallel loop. A loop left by an exit carries no values
// and an if_ that holds one has no results (the recorder keeps variables in slots).
// Guarantees: no exits; a kernel's body ends in `yield` of its results, a function's body in
// `yield` of its values; a path without a return_ yields zeros. What follows a conditional exit
// stands in the other branch where one branch always exits, else under a test of a flag slot. A
// `loop` with a break has become a while_ that carries (index, another round). Sets level
// structured.
// Linear, times the nesting depth of exits.
#include "quern/ir/ir.h"

namespace quern::ir {
void structure_exits(Kernel& kernel);
}
