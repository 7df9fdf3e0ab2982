#pragma once
// Drops serial tasks that do what the frame makes unnecessary: sums start at 0 and are results.
//
// Expects: level split.
// Guarantees: the serial task launched first stores no zeros into cells that it has not stored to
// before (a frame starts as zeros). The serial task launched last does not copy a cell into a
// result that nothing else uses: the cell is the result's own. Where that leaves nothing of either
// task, it is gone. Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void trim_schedule(Kernel& kernel);
}
