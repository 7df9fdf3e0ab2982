#include "ir/analysis/facts.h"

#include <algorithm>
#include <vector>

namespace quern::ir {

bool may_fail(const Inst* inst) {
  if (inst->is(Op::div) || inst->is(Op::rem))
    return is_int(inst->type()) &&
           (!constant_of(inst->operand(1)) || is_constant(inst->operand(1), 0));
  // Integers wrap by definition.
  if (inst->is(Op::convert)) return is_float(inst->operand(0)->type) && is_int(inst->type());
  return has(inst->op, flag::may_fail);
}

bool can_fail(const Kernel& kernel, const Inst* inst) {
  return kernel.modes.checked && kernel.level != Level::lowered && may_fail(inst);
}

namespace {
/// Of a slot: all of it, or an element by a constant. Another index may be out of range.
bool picks_known_element(const Inst* inst) {
  if (inst->operand_count() == (inst->is(Op::get) ? 1u : 2u)) return true;
  const Inst *slot = inst->operand(0)->inst, *index = constant_of(inst->operand(1));
  return slot && slot->is(Op::slot) && index && index->imm < slot->imm;
}
}  // namespace

bool is_of_arguments(const Inst* inst) {
  const NameUse names = info(inst->op).names;
  if (names == NameUse::binding || names == NameUse::axis || inst->is(Op::parallel)) return false;
  if (inst->is(Op::get) || inst->is(Op::put)) return picks_known_element(inst);
  if (is_pure(inst->op)) return !may_fail(inst);
  return inst->is(Op::slot) || has(inst->op, flag::control | flag::ends);
}

namespace {
const Inst* beyond_arguments(const Kernel& kernel, const Inst* inst,
                             std::vector<const Region*>& called) {
  if (!inst->is(Op::call)) {
    if (!is_of_arguments(inst)) return inst;
    for (const Region* r : inst->regions)
      for (const Inst* inner : *r)
        if (const Inst* found = beyond_arguments(kernel, inner, called)) return found;
    return nullptr;
  }
  if (inst->imm >= kernel.callees.size() || !kernel.callees[inst->imm].body) return inst;
  const Region* body = kernel.callees[inst->imm].body;
  if (std::ranges::find(called, body) != called.end()) return nullptr;
  called.push_back(body);
  for (const Inst* inner : *body)
    if (const Inst* found = beyond_arguments(kernel, inner, called)) return found;
  return nullptr;
}
}  // namespace

const Inst* beyond_arguments(const Kernel& kernel, const Inst* inst) {
  std::vector<const Region*> called;
  return beyond_arguments(kernel, inst, called);
}

bool has_rounds(const Inst* loop) {
  const Inst *from = constant_of(loop->operand(0)), *to = constant_of(loop->operand(1));
  if (!from || !to) return false;
  const Type type = loop->operand(0)->type;
  return is_signed(type) ? to_signed(from->imm, type) < to_signed(to->imm, type)
                         : from->imm < to->imm;
}

size_t worth_carrying(const Inst* loop) {
  constexpr size_t most = 64, most_together = 20000;  // values, and values times instructions
  constexpr size_t many_branches = 64;  // each ends a block, through which values live
  size_t instructions = 1, branches = 0;
  for (Region* region : loop->regions)
    walk(region, [&](const Inst* inst) {
      instructions++;
      branches += inst->is(Op::if_);
    });
  return branches > many_branches ? 0 : std::min(most, most_together / instructions);
}

bool costly(const Inst* inst) {
  return info(inst->op).library || inst->is(Op::div) || inst->is(Op::rem) || inst->is(Op::sqrt) ||
         inst->is(Op::random) || inst->is(Op::apply);
}

namespace {
/// Does going back give the operands zeros for a zero, whatever they are?
bool gives_zeros(Op op) {
  switch (op) {
    case Op::add:
    case Op::sub:
    case Op::neg:
    case Op::abs:
    case Op::copysign:
    case Op::min:
    case Op::max:
    case Op::fmin:
    case Op::fmax: return true;
    default: return false;
  }
}
}  // namespace

bool run_unasked(const Kernel& kernel, Inst* inst) {
  if (kernel.level != Level::structured) return true;
  const OpInfo& op = info(inst->op);
  if (op.kind == KindUse::arithmetic && op.rule == OperandRule::same && is_float(inst->type()) &&
      !gives_zeros(inst->op))
    inst->kind |= unasked;
  return !inst->is(Op::apply);
}

bool removable(const Kernel& kernel, const Inst* inst) {
  if (is_pure(inst->op)) return !can_fail(kernel, inst);
  if (inst->is(Op::load)) return !kernel.modes.checked;
  return inst->is(Op::slot) || (has(inst->op, flag::reads) && !has(inst->op, flag::writes));
}

}  // namespace quern::ir
