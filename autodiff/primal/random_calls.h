#pragma once
// Random numbers that are drawn again.
//
// Going back draws the numbers of the launch: with its key (runtime::SameRandomNumbers), of the
// same loop and iteration. The number of the call is a count, which is lost where calls are
// computed again in another order; here it becomes an ordinary value of the iteration.
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Replaces `call_number` of a kernel at level structured, without calls, by a variable that
/// counts.
void number_calls(ir::Kernel& kernel);

}  // namespace quern::autodiff
