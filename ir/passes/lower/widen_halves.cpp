#include "ir/passes/lower/widen_halves.h"

#include "ir/analysis/facts.h"
#include "quern/ir/builder.h"
#include "quern/ir/math.h"

namespace quern::ir {

namespace {

Value* call(Builder& b, const Function& f, Value* argument) {
  ValueMap map;
  map[f.body->arg(0)] = argument;
  return inline_region(b, f.body, map)[0];
}

/// Any number as a half, in conversions that the target may have. An integer that f32 does not hold
/// is above all halves.
Value* rounded(Builder& b, Value* v) {
  if (v->type == Type::f64) v = call(b, round_to_odd_function(), v);
  return b.convert(b.convert(v, Type::f32), Type::f16);
}

void through_f32(Kernel& kernel, Inst* inst) {
  const OperandRule rule = info(inst->op).rule;
  const bool conversion = rule == OperandRule::convert;
  if (!conversion && rule != OperandRule::same && rule != OperandRule::compare) return;
  const Type from = inst->operand(0)->type, to = inst->type();
  const bool native = (from == Type::f16 && to == Type::f32) || (from == Type::f32 && conversion);
  if ((from != Type::f16 && to != Type::f16) || native) return;
  Builder b(kernel);
  b.before(inst).at(inst->loc);
  std::vector<Value*> operands;
  for (const Use& use : inst->operands)
    operands.push_back(from == Type::f16 ? b.convert(use.value, Type::f32) : use.value);
  Value* v = operands[0];
  if (!conversion || to != Type::f16) {
    const Type wide[] = {to == Type::f16 ? Type::f32 : to};
    Inst* in_f32 = b.make(inst->op, wide, operands);
    in_f32->kind = inst->kind;
    // the rounding stands between a product and a sum
    if (inst->is(Op::add) || inst->is(Op::sub) || inst->is(Op::mul)) in_f32->kind |= uncontracted;
    in_f32->site = inst->site;
    v = in_f32->result();
  }
  inst->result()->replace_with(to == Type::f16 ? rounded(b, v) : v);
  inst->erase();
}

/// Conversions of halves as integer operations. What they yield is a half to what follows.
void in_integers(Kernel& kernel, Inst* inst) {
  if (!inst->is(Op::convert)) return;
  Value* v = inst->operand(0);
  const bool from = v->type == Type::f16;
  if (!from && inst->type() != Type::f16) return;
  Builder b(kernel);
  b.before(inst).at(inst->loc);
  v = call(b, from ? widen_half_function() : round_to_half_function(), v);
  if (!from) v->type = Type::f16;
  inst->result()->replace_with(v);
  inst->erase();
}

void keep_as_u16(Region* body) {
  auto retype = [](Type& t) {
    if (t == Type::f16) t = Type::u16;
  };
  walk(body, [&](Inst* inst) {
    retype(inst->elem);
    for (Value& v : inst->results) retype(v.type);
    for (Region* r : inst->regions)
      for (Value& v : r->args) retype(v.type);
    if (!inst->is(Op::bitcast) || inst->operand(0)->type != inst->type()) return;
    inst->result()->replace_with(inst->operand(0));
    inst->erase();
  });
}

}  // namespace

void widen_halves(Kernel& kernel, const TargetTraits& target) {
  for (Task& task : kernel.tasks) {
    walk(task.body, [&](Inst* inst) { through_f32(kernel, inst); });
    if (target.half_conversions) continue;
    walk(task.body, [&](Inst* inst) { in_integers(kernel, inst); });
    keep_as_u16(task.body);
  }
}

}  // namespace quern::ir
