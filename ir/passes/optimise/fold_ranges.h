#pragma once
// Answers of integer questions that follow from where loops run and branches stand.
//
// An index that runs through a field is inside of it: `clamp(i, 0, n - 1)` is i, and `i >= 0` holds.
// Who writes for any index asks it all the same (`bordered`, functions that take an index), and going
// back through a stencil asks it of each neighbour. (Harrison, "Compiler Analysis of the Value Ranges
// for Variables", IEEE Trans. Software Engineering SE-3(3), 1977.)
//
// Expects: any level before lowering, simplified. Of tasks that are not opened nobody knows where
// their iterations run.
// Guarantees: comparisons of integers that `Ranges` answers are constants, and minima and maxima
// of which it knows the lesser are one of their operands. What is asked of values that no loop's
// index is in is left alone, and at most 1,000 questions are asked of a root. Linear, times what a
// question takes.
#include "quern/ir/ir.h"

namespace quern::ir {
/// `knows_trees`: the bindings say which fields lie on trees, as they do behind `bind`. First indices
/// of others are near 0.
void fold_ranges(Kernel& kernel, bool knows_trees);
}  // namespace quern::ir
