#pragma once
// Replaces what is done to fields on trees by loads, stores and atomics of the trees' parts
// (quern/ir/trees.h), and loops over such fields by loops over their cells.
//
// Expects: level split or opened, bound.
// Guarantees: no access and no loop names a field on a tree. An access that still has a site of its
// bounds is checked in front. A read finds the background where there is no element. A write first
// makes its element active, but in a loop over the same tree at the loop's own indices, which is so
// already; before a task that may do so a step sees to it that the tree
// has room for the cells that it takes, and a serial task says how many there are. A loop over a
// field runs over the cells of the last pool, as the tree's list has them, and over a cell's
// elements; a step before it sees to the list, a serial task puts its length into a frame cell.
// Elements that are not active run nothing. What is deactivated is marked, and a step behind the task collects it. The `iteration` of such a loop is the element's place in
// row-major order, as on a field without a tree.
// Parts are bindings behind the frame's. What is_active, activate and deactivate mean for other fields
// is known to bind. Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void expand_trees(Kernel& kernel);
}
