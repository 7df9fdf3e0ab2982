#pragma once
// Every stage of a kernel between two passes.
#include <functional>

#include "quern/ir/lower.h"

namespace quern::test {

/// Takes a copy of `kernel` through the whole pipeline; `visit` sees it as given and after each
/// pass. `target` says for what it is lowered.
inline void each_stage(const ir::Kernel& kernel, const ir::TargetTraits& target,
                       const ir::PassHook& visit) {
  auto copy = ir::clone(kernel);
  visit("start", *copy);
  if (copy->level == ir::Level::recorded) ir::finish_recording(*copy, visit);
  ir::optimise(*copy, visit);
  ir::split(*copy, visit);
  ir::Signature signature;
  signature.modes = copy->modes;
  for (uint32_t k = 0; k < copy->bindings.size(); k++) signature.fields.push_back({true, k});
  ir::lower(*copy, signature, target, visit);
}

inline ir::TargetTraits walked(ir::Task::Walk walk) {
  ir::TargetTraits traits;
  traits.walk = walk;
  return traits;
}

}  // namespace quern::test
