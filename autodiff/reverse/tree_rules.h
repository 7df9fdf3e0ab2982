#pragma once
// What going back asks of fields on trees.
//
// A reverse kernel sees a tree as it was before the launch. So what asks which elements are active
// may not stand behind what changes that, in the same kernel; and as the launch is not run again on
// a copy of a tree, fields on one are not read behind writes to them.
#include <span>
#include <vector>

#include "autodiff/primal/combined.h"
#include "quern/runtime/launch.h"

namespace quern::autodiff {

class TreeRules {
 public:
  using OnTree = runtime::LaunchKey::OnTree;
  /// `trees`: of the bindings that a launch passes. Others are on the tree of what they go with.
  TreeRules(const ir::Kernel& kernel, std::span<const OnTree> trees);

  bool any() const;
  bool is_on_tree(uint32_t binding) const {
    return binding < trees_.size() && trees_[binding].tree != ir::no_binding;
  }
  /// Throws Error with the line of what asks which elements are active behind what may have changed
  /// that; and for floats that belong to a level's cells, or are combined in place.
  void expect_known(const std::vector<bool>& inputs, std::span<const Scratch> scratch) const;
  /// Throws Error where one of these bindings is on a tree: what the launch reads of its own writes
  /// to them is wanted.
  void expect_not_copied(const std::vector<bool>& bindings) const;

 private:
  bool is_own(const ir::Inst* write) const;
  bool may_change(const ir::Inst* inst) const;

  const ir::Kernel& kernel_;
  std::vector<OnTree> trees_;
};

}  // namespace quern::autodiff
