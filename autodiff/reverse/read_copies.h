#pragma once
// Arrays that rounds read again and again before they change them.
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Of a local array that a round of a loop first reads, in loops within loops, and then changes, the round
/// gets a copy to read. What is read of an array that changes later is logged, read by read
/// (logged_reads.h): so an element is once a round, whoever reads it how often. That is done where constant
/// bounds say that there are twice as many reads as elements, so that no log becomes longer by it. Of a kernel
/// at level structured.
void copy_arrays_that_change(ir::Kernel& kernel);

}  // namespace quern::autodiff
