#pragma once
// What a task does with lists: how long they are, what it appends, and its accesses of what it has
// appended, which need no way down.
#include <map>

#include "ir/passes/trees/descent.h"

namespace quern::ir {

class ListAccess {
 public:
  ListAccess(const Kernel& kernel, Builder& b) : kernel_(kernel), b_(b) {}

  /// Accesses of another task follow.
  void begin_task();
  /// Is the element one that an `append` of the same iteration has made? A check of its indices may stand
  /// between.
  bool is_appended(const Inst* inst) const { return appended(inst, true); }
  /// Each access of the task, before any is expanded.
  void note(const Inst* inst);
  /// The element's number, where an `append` in front has told it; else null.
  Value* number(const Inst* inst) const;
  /// The answer of an `append` or a `length`, in indices of the field, which may be a view of a part
  /// of the list.
  Value* answer(const Inst* inst, Descent& descent, const Descent::Path& path, bool racing);

 private:
  const Inst* appended(const Inst* inst, bool checked) const;

  const Kernel& kernel_;
  Builder& b_;
  std::map<const Inst*, const Inst*> appended_by_;  ///< accesses of the elements that `append` made
  std::map<const Inst*, Value*> numbers_;           ///< of those elements, by the `append`
};

}  // namespace quern::ir
