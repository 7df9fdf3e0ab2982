#pragma once
// Replaces what is done to fields on trees by loads, stores and atomics of the trees' parts
// (quern/ir/trees.h), and loops over such fields by loops over their cells.
//
// Expects: level split or opened, bound.
// Guarantees: no access and no loop names a field on a tree. An access that still has a site of its
// bounds is checked in front. A read finds the background where there is no element. A write first
// makes its element active, but in a loop over the same tree at the loop's own indices, which is so
// already; before a task that may do so a step sees to it that the tree has room for the cells that it
// takes, and a serial task says how many there are. A task that may as well run twice is launched by
// that step alone. Accesses near one another look for their cells together (neighbourhood.h). A loop over
// a field runs over the cells of the last pool, as the tree's list has them, and over a cell's elements;
// a step before it sees to the list, a serial task puts its length into a frame cell.
// Elements that are not active run nothing. An iteration of the task is an element, or, in chunked
// tasks of a target that walks in chunks, a cell where that is possible: then reads around the own
// element become reads of arrays that are filled once a cell (tree_loop.h, leaf_halo.h); else a task
// over cells, in front, says which lie beside each (leaf_neighbours.h). What is
// deactivated is marked, and a step behind the task collects it. The `iteration` of such a loop is the
// element's place in row-major order, as on a field without a tree.
// Parts are bindings behind the frame's. What is_active, activate and deactivate mean for other fields
// is known to bind. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void expand_trees(Kernel& kernel, const TargetTraits& target);
/// For a target that walks element by element.
void expand_trees(Kernel& kernel);
}  // namespace quern::ir
