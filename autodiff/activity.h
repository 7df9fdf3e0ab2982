#pragma once
// Which values of a kernel vary smoothly with its active inputs.
//
// A float is *active* where it depends on an element of a field, or on a scalar argument, through
// operations whose derivative is not zero everywhere. What is not active has the tangent and the
// adjoint 0, so nothing is computed for it. Integers, bools and what is made of them never are.
#include <unordered_set>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::autodiff {

bool has_floats(const ir::Binding& binding);
/// Of each binding of the kernel: may derivatives be taken by it?
std::vector<bool> inputs_of(const ir::Kernel& kernel);

class Activity {
 public:
  /// Of a kernel at level structured, without calls. `active`: of each binding, whether its floats
  /// are inputs that derivatives are taken by.
  Activity(const ir::Kernel& kernel, std::vector<bool> active);

  /// Of a value, or a slot: does it vary?
  bool operator()(const ir::Value* v) const { return active_.contains(v); }

 private:
  void visit(const ir::Inst* inst);
  void pass(const ir::Value* from, const ir::Value* to);
  void pass_yields(const ir::Region* region, size_t skipped, const ir::Inst* to);
  bool takes_active(const ir::Inst* inst) const;
  bool makes_active(const ir::Inst* inst) const;

  const std::vector<bool> inputs_;
  std::unordered_set<const ir::Value*> active_;
  bool changed_ = false;
};

}  // namespace quern::autodiff
