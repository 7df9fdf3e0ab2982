#pragma once
// Loops whose rounds the augmented primal may keep (reverse/augmented.h).
#include <cstdint>

#include "quern/ir/ir.h"

namespace quern::autodiff {

enum class Augment : uint8_t {
  never,
  by_loops,  ///< where it pays, but for gradients at once (reverse/at_once.h)
  where_it_pays,
  wherever_possible,
};

/// The parallel loop of the kernel's body in which the loop is, if its bounds are known before
/// that: all iterations that run it have as many rounds. Null: there is none.
const ir::Inst* alike_in(const ir::Kernel& kernel, const ir::Inst* loop);

/// Does the loop run once at most in an iteration of that parallel loop, and leave nothing in
/// variables, which would lack it where the loop is not run again?
bool may_be_augmented(const ir::Inst* loop, const ir::Inst* parallel);

}  // namespace quern::autodiff
