#include "ir/passes/trees/accesses.h"

#include "ir/analysis/facts.h"
#include "ir/passes/trees/tree_parts.h"

namespace quern::ir {

namespace {

bool tells_activity(const Kernel& kernel, const Inst* condition, const Inst* of) {
  if (!condition) return false;
  const auto tells = [&](const Value* v) { return tells_activity(kernel, v->inst, of); };
  if (condition->is(Op::bit_and))
    return tells(condition->operand(0)) || tells(condition->operand(1));
  // What stands for a && b, and for a check of indices around the question.
  if (condition->is(Op::if_) && condition->results.size() == 1) {
    const Inst* otherwise = constant_of(condition->region(1)->last->operand(0));
    return otherwise && otherwise->imm == 0 &&
           (tells(condition->operand(0)) || tells(condition->region(0)->last->operand(0)));
  }
  if (!condition->is(Op::is_active) || !names_alike(kernel, of, condition->binding())) return false;
  for (size_t k = 0; k < condition->operand_count(); k++)
    if (condition->operand(k) != of->operand(k)) return false;
  return true;
}

}  // namespace

bool may_claim(const Inst* inst) {
  return inst->is(Op::store) || inst->is(Op::activate) || inst->is(Op::append) ||
         (inst->is(Op::atomic) && inst->atomic() != AtomicOp::load);
}

bool claims(const Kernel& kernel, const Inst* inst) {
  return may_claim(inst) && !kernel.bindings[inst->binding()].layout.is_of_cells();
}

bool names_alike(const Kernel& kernel, const Inst* inst, uint32_t field) {
  const Binding &mine = kernel.bindings[inst->binding()], &other = kernel.bindings[field];
  if (inst->binding() == field) return true;
  return share_elements(mine, other) && !mine.layout.rebased && !other.layout.rebased;
}

bool is_known(const Kernel& kernel, const Inst* inst) {
  if (!may_claim(inst) || inst->is(Op::append)) return false;
  const Region* inside = inst->parent;
  for (const Inst* around = inside->parent; around; around = inside->parent) {
    if (around->is(Op::if_) && inside == around->region(0) &&
        tells_activity(kernel, around->operand(0)->inst, inst))
      return true;
    inside = around->parent;
  }
  return false;
}

}  // namespace quern::ir
