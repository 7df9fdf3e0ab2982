#pragma once
// Where threads that a branch parts meet again.
#include "tests/gpu/ptx/code.h"

namespace quern::ptx {

/// Sets Inst::join of each branch to its immediate postdominator: the first instruction that every
/// path from there to the end of the function comes by, where ptxas lets a warp converge. None
/// where only the end itself is such.
void find_joins(std::vector<Inst>& code);

}  // namespace quern::ptx
