#pragma once
// Serial tasks that stand before one that uses a tree.
#include "ir/passes/trees/tree_parts.h"

namespace quern::ir {

/// Makes tasks, and the steps that launch them. They stand before task `number` of the kernel, run where
/// it runs, and have its location.
class TreeTasks {
 public:
  TreeTasks(Kernel& kernel, TreeParts& parts) : kernel_(kernel), b_(kernel), parts_(parts) {}

  /// Puts the number of the cells in the tree's list into a cell of the frame.
  Step count_cells(uint32_t field, uint32_t cell, uint32_t number);
  /// What was given back until now may be taken; who found nothing has taken nothing.
  Step allow_taking(uint32_t field, uint32_t number);
  /// Of this body.
  Step add_serial(Region* body, uint32_t number);

 private:
  Region* begin(uint32_t number);

  Kernel& kernel_;
  Builder b_;
  TreeParts& parts_;
};

/// A step that launches a task, which becomes one of the kernel's.
Step add_task(Kernel& kernel, Task task);

}  // namespace quern::ir
