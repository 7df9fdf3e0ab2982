#pragma once
// What an iteration computes by loops and then uses, and the augmented primal keeps, so that going
// back does not run those loops once more to find it: local arrays that loops fill, as with the
// terms of a log Σ exp, and results of loops.
//
// Of arrays all elements are written, by a loop over them, before one is read: what the iteration
// leaves in one is what was read of it. Loops that keep something of their rounds are run again
// anyway, and so are not taken. All iterations have as many elements, and integers alone decide how
// many iterations there are: places are known before the launch.
#include <span>
#include <vector>

#include "autodiff/plans/loop_plans.h"

namespace quern::autodiff {

struct KeptResult {
  const ir::Value* value = nullptr;    ///< a local array's slot, or a result of a loop
  const ir::Inst* parallel = nullptr;  ///< in whose iterations it is, directly
  uint64_t elements = 1;               ///< of an array
  ir::Type type = ir::Type::none;      ///< of an element
  uint32_t binding = ir::no_binding;   ///< the field that has it, once that is declared
};

/// Of a kernel at level structured those that who goes back wants: where they pay (costs.h), and
/// with them that the primal is compiled once more; or all. Of a loop's results all that are wanted
/// are kept, or none.
std::vector<KeptResult> choose_kept_results(const ir::Kernel& kernel, const Activity& active,
                                            const Slopes& slopes, const LoopPlans& plans,
                                            Augment where);

}  // namespace quern::autodiff
