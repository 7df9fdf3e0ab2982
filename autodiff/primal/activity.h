#pragma once
// Which values of a kernel vary smoothly with its active inputs.
//
// A float is *active* where it depends on an element of a field, or on a scalar argument, through
// operations whose derivative is not zero everywhere. What is not active has the tangent and the
// adjoint 0, so nothing is computed for it. Integers, bools and what is made of them never are.
// Going back nothing is either for what has no part in anything: only a comparison asks for it.
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

  /// From here on only what also has a part in something is active: in a result of the kernel, in
  /// an element of such a binding, or in what refuses to be gone back through. Minima, maxima and
  /// products that iterations combine are gone back through by their copies (combined.h).
  void keep_what_has_a_part(const ir::Kernel& kernel);

  /// Of a value, or a slot: does it vary?
  bool operator()(const ir::Value* v) const { return active_.contains(v); }

 private:
  void visit(const ir::Inst* inst);
  void pass(const ir::Value* from, const ir::Value* to);
  bool takes_active(const ir::Inst* inst) const;
  bool makes_active(const ir::Inst* inst) const;

  const std::vector<bool> inputs_;
  std::unordered_set<const ir::Value*> active_;
  bool changed_ = false;
};

}  // namespace quern::autodiff
