#include "ir/analysis/divergence.h"

#include <algorithm>

#include "quern/ir/abi.h"

namespace quern::ir {

namespace {

bool is_shared(Builtin b) {
  switch (b) {
    case Builtin::end:
    case Builtin::threads:
    case Builtin::reciprocal:
    case Builtin::next_reciprocal:
    case Builtin::first_row:
    case Builtin::rows:
    case Builtin::asks: return true;
    default: return false;
  }
}

}  // namespace

Divergence::Divergence(const Kernel& kernel, const Task& task)
    : effects_(kernel), task_(effects_.of(task.body)) {
  State none = 0;
  Dataflow<Divergence, true>(*this).run(task.body, none);
}

bool Divergence::decides_differently(const Inst* owner) const {
  switch (owner->op) {
    case Op::if_: return varies(owner->operand(0));
    case Op::loop:
      return varies(owner->operand(0)) || varies(owner->operand(1)) || varies(owner->operand(2));
    case Op::while_: return varies(owner->region(0)->last->operand(0));
    default: return true;  // each thread has iterations of its own
  }
}

const Inst* Divergence::around(const Inst* inst) const {
  for (const Inst* at = inst->parent->parent; at; at = at->parent->parent)
    if (decides_differently(at)) return at;
  return nullptr;
}

void Divergence::enter(const Region* region, State& state) {
  const Inst* owner = region->parent;
  if (owner && owner->is(Op::parallel))
    for (const Value& v : region->args) vary(&v);
  if (owner && owner->is(Op::loop)) {
    if (varies(owner->operand(0)) || varies(owner->operand(2))) vary(region->arg(0));
    for (size_t k = 3; k < owner->operand_count(); k++) {
      if (!varies(owner->operand(k))) continue;
      vary(region->arg(k - 2));
      vary(owner->result(k - 3));  // there may be no round
    }
  }
  if (owner && owner->is(Op::while_) && region == owner->region(0))
    for (size_t k = 0; k < owner->operand_count(); k++)
      if (varies(owner->operand(k))) vary(region->arg(k));
  state = varying_.size();
}

bool Divergence::reads_shared(const Inst* inst) {
  if (has(inst->op, flag::writes)) return false;
  if (inst->is(Op::get)) return !varies(inst->operand(0));
  if (inst->is(Op::read) && inst->imm == abi::error_class) return true;
  return !effects_.may_overlap(effects_.of(inst).reads, task_.writes);
}

void Divergence::step(const Inst* inst, State& state, bool) {
  const bool any =
      std::ranges::any_of(inst->operands, [&](const Use& u) { return varies(u.value); });
  if (inst->is(Op::yield)) {
    yielded(inst);
  } else if (inst->is(Op::put)) {
    if (any || around(inst)) vary(inst->operand(0));
  } else if (!inst->results.empty()) {
    bool shared = is_pure(inst->op) || inst->is(Op::slot);
    if (inst->is(Op::builtin)) shared = is_shared(inst->builtin());
    if (has(inst->op, flag::reads)) shared = reads_shared(inst);
    if (inst->is(Op::iteration)) shared = false;
    if (any || !shared) vary(inst->result());
  }
  state = varying_.size();
}

/// What a region gives back to its owner, to the next round, or from a while_'s condition.
void Divergence::yielded(const Inst* yield) {
  const Region* region = yield->parent;
  const Inst* owner = region->parent;
  if (!owner || owner->is(Op::parallel)) return;
  const bool apart = decides_differently(owner);
  const bool condition = owner->is(Op::while_) && region == owner->region(0);
  const size_t skip = condition ? 1 : 0;
  for (size_t k = skip; k < yield->operand_count(); k++) {
    const bool one = varies(yield->operand(k));
    const size_t at = k - skip;
    if (owner->is(Op::if_)) {
      if (one || apart) vary(owner->result(at));
    } else if (owner->is(Op::loop)) {
      if (one) vary(region->arg(at + 1));
      if (one || apart) vary(owner->result(at));
    } else if (condition) {
      if (one) vary(owner->region(1)->arg(at));
      if (one || apart) vary(owner->result(at));
    } else if (one) {
      vary(owner->region(0)->arg(at));
    }
  }
}

}  // namespace quern::ir
