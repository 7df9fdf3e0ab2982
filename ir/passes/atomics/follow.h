#pragma once
// Tasks that a pass adds in front of others and behind them.
#include <vector>

#include "quern/ir/ir.h"

namespace quern::ir {

/// Adds the task to the kernel; the step that launches it.
inline Step launch_of(Kernel& kernel, Task task) {
  Step step;
  step.task = uint32_t(kernel.tasks.size());
  kernel.tasks.push_back(std::move(task));
  return step;
}

/// Puts `before[task]` in front of each launch of a task.
inline void precede(std::vector<Step>& steps, const std::vector<std::vector<Step>>& before) {
  for (size_t k = 0; k < steps.size(); k++) {
    precede(steps[k].body, before);
    precede(steps[k].condition, before);
    if (steps[k].kind != Step::launch || steps[k].task >= before.size()) continue;
    const std::vector<Step>& first = before[steps[k].task];
    steps.insert(steps.begin() + int64_t(k), first.begin(), first.end());
    k += first.size();
  }
}

/// Puts `after[task]` behind each launch of a task.
inline void follow(std::vector<Step>& steps, const std::vector<std::vector<Step>>& after) {
  for (size_t k = 0; k < steps.size(); k++) {
    follow(steps[k].body, after);
    follow(steps[k].condition, after);
    if (steps[k].kind != Step::launch || steps[k].task >= after.size()) continue;
    const std::vector<Step>& next = after[steps[k].task];
    steps.insert(steps.begin() + int64_t(k) + 1, next.begin(), next.end());
    k += next.size();
  }
}

}  // namespace quern::ir
