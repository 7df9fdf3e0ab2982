#pragma once
// `random` becomes Philox4x32-10, and what it takes comes from the launch and the task.
//
// Expects: open_tasks has run.
// Guarantees: no `random`, `launch_key`, `ordinal`, `iteration`, `call_number`. Key: seed and launch
// number; counter: the iteration's linear number (low and high word), the number of the call, the
// ordinal; the result is word 0. The call number is a slot of the iteration; in serial code it runs
// on from task to task in a frame cell.
// Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void lower_random(Kernel& kernel);
}
