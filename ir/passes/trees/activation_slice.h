#pragma once
// The part of a task that decides which elements become active.
#include <optional>

#include "ir/passes/trees/tree_parts.h"

namespace quern::ir {

struct ActivationSlice {
  Region* body = nullptr;
  std::vector<Inst*> activations;  ///< `activate`, in the body
  bool loops = true;  ///< else it is a serial task's, as no iteration decides by itself
};

/// A copy of the task's body in which the accesses `claims`, which stand in it, are activations, and
/// that does nothing besides: it may run before the task, any number of times. None where the task
/// decides by something that it changes itself, or that activations change.
std::optional<ActivationSlice> activation_slice(Kernel& kernel, const Task& task,
                                                const std::vector<Inst*>& claims);

/// May the task run twice, and nobody sees it? Then it finds out itself how much room it wants.
bool can_repeat(const Kernel& kernel, const Task& task);

/// How many cells of a level an iteration of their task takes at most by the accesses; 0: that is not
/// known. `chunks`: how many cells a list of theirs has, 0 where they are in none.
uint64_t activations_per_iteration(const std::vector<Inst*>& claims, uint32_t chunks);

}  // namespace quern::ir
