#pragma once
// Cuts a kernel's body into tasks, a schedule and a frame.
//
// Expects: level structured. Parallel loops stand at kernel level, that is in the body or in an
// if_, loop or while_ of kernel level.
// Guarantees: level split, no body. Each parallel loop is a range task, without a domain where it
// names the field that it walks; each maximal run of serial code between them one serial task; runs
// without effect are gone. A kernel-level value used in another task than its own is recomputed
// there where it depends on constants, parameters and extents alone and takes few operations, as a
// bound of a domain up to 300, none of the math library; else kept in a frame cell, where anything of
// effect reads it: written once, where it was computed, never re-read from a field. A kernel-level slot that two tasks share becomes cells (an array: consecutive ones);
// a range task loads such a scalar at its start. Cells 0… hold the kernel's results.
// Kernel-level control becomes steps: `if_` with a condition cell for either branch, `loop` and
// `while_` a repeat whose counter and carried values are cells.
// `reduce` names an entry of its task's reductions.
// A frame access is a load or store of the frame binding: component = cell; with one index operand
// it means cell + index.
// Linear, times the depth of kernel-level control.
#include "quern/ir/ir.h"

namespace quern::ir {
void split_tasks(Kernel& kernel);
}
