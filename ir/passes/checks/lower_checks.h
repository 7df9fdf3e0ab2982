#pragma once
// Checks become branches to cold code that fills in the error record.
//
// Expects: open_tasks has run. Guarantees: no `check`. The first that fails claims the record by
// compare-and-swap and writes site, task, iteration, launch and up to 8 values, in place or, where
// the target has calls, in a function that the checks share. A task does nothing where another task
// took the record before it starts (asked once per chunk or thread; on a target that is told of
// failures, not where none can have been). A serial task does nothing where the record is taken at
// all, except that it clears the conditions of the schedule it was to compute, so that repeats end.
// In checked mode a while_ ends where the record is taken, so that a substituted value cannot keep
// it going. On a stoppable target a while_ ends in every mode where the host has asked the launch
// to end, and the first loop, or task that has not begun, to see it claims the record with its
// place. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void lower_checks(Kernel& kernel, const TargetTraits& target);
}
