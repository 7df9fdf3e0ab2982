#pragma once
// Derivatives that take a call of the math library, computed where their operation is.
//
// Going back multiplies by cos x where x was the operand of a sine. As a value of the primal, beside the
// sine, that shares work with it, and loops keep it like what they make themselves (loop_plans.h): where
// they do, nobody calls the library for it when going back.
#include <unordered_map>

#include "autodiff/primal/activity.h"

namespace quern::autodiff {

/// Of operations of one operand, their derivatives (ir::library_slope).
using Slopes = std::unordered_map<const ir::Inst*, ir::Value*>;

/// Adds those of what varies to a kernel at level structured.
Slopes add_slopes(ir::Kernel& kernel, const Activity& active);

}  // namespace quern::autodiff
