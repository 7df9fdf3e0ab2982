#pragma once
// The part of a task that decides which elements become active.
#include <optional>

#include "ir/passes/trees/tree_parts.h"

namespace quern::ir {

struct ActivationSlice {
  Region* body = nullptr;
  std::vector<Inst*> activations;  ///< `activate`, in the body
};

/// A copy of the task's body in which the accesses `claims`, which stand in it, are activations, and
/// that does nothing besides: it may run before the task, any number of times. None where the task
/// decides by something that it changes itself, or that activations change.
std::optional<ActivationSlice> activation_slice(Kernel& kernel, const Task& task,
                                                const std::vector<Inst*>& claims);

/// How many of the accesses an iteration of their task runs at most; 0: that is not known.
uint64_t activations_per_iteration(const std::vector<Inst*>& claims);

}  // namespace quern::ir
