#include "autodiff/activity.h"

#include <utility>

#include "quern/ir/partials.h"

namespace quern::autodiff {

using namespace ir;

bool has_floats(const Binding& binding) {
  for (const Component& c : binding.components)
    if (is_float(c.type)) return true;
  return false;
}

std::vector<bool> inputs_of(const Kernel& kernel) {
  std::vector<bool> all;
  for (const Binding& b : kernel.bindings) all.push_back(has_floats(b));
  return all;
}

Activity::Activity(const Kernel& kernel, std::vector<bool> active) : inputs_(std::move(active)) {
  do {  // until what loops carry and slots keep is known
    changed_ = false;
    walk(kernel.body, [&](const Inst* inst) { visit(inst); });
  } while (changed_);
}

void Activity::pass(const Value* from, const Value* to) {
  if (is_float(from->type) && active_.contains(from)) changed_ |= active_.insert(to).second;
}

/// What the region yields behind the first `skipped` values becomes the results of `to`.
void Activity::pass_yields(const Region* region, size_t skipped, const Inst* to) {
  const Inst* yield = region->terminator();
  for (size_t k = skipped; k < yield->operand_count(); k++)
    pass(yield->operand(k), to->result(k - skipped));
}

bool Activity::takes_active(const Inst* inst) const {
  for (const Use& use : inst->operands)
    if (is_float(use.value->type) && active_.contains(use.value)) return true;
  return false;
}

bool Activity::makes_active(const Inst* inst) const {
  switch (inst->op) {
    case Op::param:
    case Op::load:
    case Op::atomic: return inputs_[inst->binding()];
    case Op::get: return active_.contains(inst->operand(0));
    case Op::bitcast: return false;
    default: break;
  }
  if (info(inst->op).rule == OperandRule::special || is_flat(inst->op)) return false;
  return takes_active(inst);
}

void Activity::visit(const Inst* inst) {
  switch (inst->op) {
    case Op::apply:
      if (takes_active(inst))
        for (const Value& v : inst->results)
          if (is_float(v.type)) changed_ |= active_.insert(&v).second;
      return;
    case Op::put: return pass(inst->operands.back().value, inst->operand(0));
    case Op::reduce: return pass(inst->operand(1), inst->operand(0));
    case Op::if_:
      for (const Region* region : inst->regions) pass_yields(region, 0, inst);
      return;
    case Op::loop: {
      const Region* body = inst->region(0);
      for (size_t k = 0; k < inst->results.size(); k++) {
        pass(inst->operand(3 + k), body->arg(1 + k));
        pass(body->terminator()->operand(k), body->arg(1 + k));
        pass(body->arg(1 + k), inst->result(k));  // where it has no rounds
      }
      return;
    }
    case Op::while_: {
      const Region *condition = inst->region(0), *body = inst->region(1);
      for (size_t k = 0; k < inst->results.size(); k++) {
        pass(inst->operand(k), condition->arg(k));
        pass(body->terminator()->operand(k), condition->arg(k));
        pass(condition->terminator()->operand(1 + k), body->arg(k));
        pass(condition->terminator()->operand(1 + k), inst->result(k));
      }
      return;
    }
    default:
      if (!inst->results.empty() && is_float(inst->type()) && makes_active(inst))
        changed_ |= active_.insert(inst->result()).second;
  }
}

}  // namespace quern::autodiff
