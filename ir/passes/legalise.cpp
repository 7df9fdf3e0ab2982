#include "ir/passes/legalise.h"

#include <algorithm>

#include "ir/passes/legalise_atomics.h"
#include "quern/ir/builder.h"
#include "quern/ir/math.h"

namespace quern::ir {

namespace {

/// The function that replaces an instruction, or null.
const Function* replacement(const Kernel& kernel, const TargetTraits& target, const Inst* inst) {
  bool strict = kernel.modes.strict;
  if (info(inst->op).library) {
    const bool native = std::ranges::count(target.native_math, std::pair(inst->op, inst->type()));
    return native && !strict ? nullptr : &math_function(inst->op, inst->type());
  }
  if (inst->is(Op::fma))
    return target.fma_exact[inst->type() == Type::f64] ? nullptr : &fma_function(inst->type());
  if (!strict || inst->results.empty() || inst->type() != Type::f32) return nullptr;
  if (inst->is(Op::div) && !target.div_exact) return &div_function(Type::f32);
  if (inst->is(Op::sqrt) && !target.sqrt_exact) return &sqrt_function(Type::f32);
  return nullptr;
}

void replace(Kernel& kernel, const TargetTraits& target, Inst* inst) {
  const Function* f = replacement(kernel, target, inst);
  if (!f) return;
  Builder b(kernel);
  b.before(inst).at(inst->loc);
  ValueMap map;
  for (size_t k = 0; k < inst->operand_count(); k++) map[f->body->arg(k)] = inst->operand(k);
  Inst* before = inst->prev;
  Region* region = inst->parent;
  inst->result()->replace_with(inline_region(b, f->body, map)[0]);
  // What came in may itself be made of functions that the target lacks.
  Inst* at = before ? before->next : region->first;
  while (at != inst) {
    Inst* next = at->next;
    std::vector<Inst*> inner = {at};
    for (Region* r : at->regions) walk(r, [&](Inst* i) { inner.push_back(i); });
    for (Inst* i : inner) replace(kernel, target, i);
    at = next;
  }
  inst->erase();
}

}  // namespace

void legalise(Kernel& kernel, const TargetTraits& target) {
  for (Task& task : kernel.tasks)
    walk(task.body, [&](Inst* inst) { replace(kernel, target, inst); });
  legalise_atomics(kernel, target);
}

}  // namespace quern::ir
