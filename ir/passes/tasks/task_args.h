#pragma once
#include <map>

#include "quern/ir/abi.h"
#include "quern/ir/builder.h"

namespace quern::ir {

/// Entries of the argument block, each read once, at the top of a task's body.
class TaskArgs {
 public:
  TaskArgs(Kernel& kernel, const Task& task) : b_(kernel), body_(task.body) {}

  Value* get(uint32_t offset, Type type) {
    Value*& v = values_[{offset, type}];
    if (v) return v;
    b_.at_end(body_);
    if (Inst* next = last_ ? last_->next : body_->first) b_.before(next);
    v = b_.arg(offset, type);
    last_ = v->inst;
    return v;
  }

 private:
  Builder b_;
  Region* body_;
  Inst* last_ = nullptr;
  std::map<std::pair<uint32_t, Type>, Value*> values_;
};

}  // namespace quern::ir
