#pragma once
// The reverse kernel's body: the primal's values, computed again, and adjoints that are carried
// back.
#include "autodiff/plans/logged_reads.h"
#include "autodiff/plans/loop_plans.h"
#include "autodiff/primal/activity.h"
#include "autodiff/reverse/replay.h"
#include "autodiff/reverse/reverse.h"
#include "autodiff/reverse/tree_rules.h"
#include "quern/ir/partials.h"

namespace quern::autodiff {

/// A primal at level structured, and what is known of it.
struct Primal {
  const ir::Kernel& kernel;
  uint32_t count = 0;  ///< of its own bindings: those of its log stand behind them
  const LoggedReads& logged;
  const std::vector<bool>& inputs;
  const Activity& active;
  const Slopes& slopes;
  const LoopPlans& plans;
  const std::vector<RoundsSite>& sites;
  const std::vector<KeptResult>& results;  ///< that the augmented primal keeps
  const TreeRules& trees;
  ir::Further further;  ///< of the reverse kernel
  /// The number that the reverse kernel adds to as the primal does, with an adjoint of 1; or
  /// no_binding (at_once.h).
  uint32_t number = ir::no_binding;
};

/// Fills `out.kernel`, which has the primal's bindings, and says in `out` what stands behind those.
void pull(const Primal& primal, Reverse& out);

}  // namespace quern::autodiff
