#pragma once
// Loops that carry what one of their rounds has made: the least of many, the nearest of what a ray
// meets. Each round passes what varies on as it is, or replaces it by what does not depend on it. So
// the last round that replaced it has all of its adjoint, and the others have none.
#include <functional>
#include <vector>

#include "autodiff/primal/activity.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

/// How the rounds of a loop replace a carried value, or do not.
struct Replacement {
  size_t carried = 0;                ///< its number among what the loop carries
  const ir::Inst* update = nullptr;  ///< min, max, fmin, fmax, select or if
  const ir::Value* by = nullptr;     ///< what it becomes
  bool is_second = false;            ///< `by` is the second of the update's two values
  /// Is `by` there in all rounds? Else it is made in a branch.
  bool is_chosen() const { return !update->is(ir::Op::if_); }
};

/// Of each carried value of the loop that varies, if its rounds replace all of them or none, and do
/// nothing else that varies; else empty. For a loop over a range.
std::vector<Replacement> replacements_of(const ir::Inst* loop, const Activity& active);

/// What the update chooses by; null of a minimum or maximum.
const ir::Value* condition_of(const Replacement& replacement);

/// Does a round replace what the loop carries? b1. `now`: of a value of the body in that round.
ir::Value* is_replaced(ir::Builder& b, const Replacement& replacement,
                       const std::function<ir::Value*(const ir::Value*)>& now);

}  // namespace quern::autodiff
