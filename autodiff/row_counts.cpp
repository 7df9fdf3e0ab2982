#include "autodiff/row_counts.h"

#include <algorithm>

namespace quern::autodiff {

using namespace ir;

RowCounts::RowCounts(const Kernel& kernel) : kernel_(kernel) {
  walk(kernel.body, [&](const Inst* inst) {
    if (has(inst->op, flag::writes) && accesses_element(inst->op))
      written_.insert(kernel.bindings[inst->binding()].alias_class);
  });
}

bool RowCounts::is_by_integers(const Inst* inst) {
  if (!are_bounds(inst)) return false;
  for (const Region* r = inst->parent; r->parent; r = r->parent->parent)
    if (!are_bounds(r->parent)) return false;
  return true;
}

/// Is what decides how often the instruction's regions run?
bool RowCounts::are_bounds(const Inst* inst) {
  switch (inst->op) {
    case Op::if_: return is_integer(inst->operand(0));
    case Op::loop:
      return is_integer(inst->operand(0)) && is_integer(inst->operand(1)) &&
             is_integer(inst->operand(2));
    case Op::parallel:
      return std::ranges::all_of(inst->operands, [&](const Use& u) { return is_integer(u.value); });
    case Op::while_: return is_integer(inst->region(0)->terminator()->operand(0));
    default: return true;
  }
}

/// What a loop carries is one where it begins as one and each round makes one of one.
bool RowCounts::is_integer(const Value* v) {
  if (is_float(v->type)) return false;
  const auto [at, is_new] = known_.try_emplace(v, true);
  if (!is_new) return at->second;
  if (is_computed(v)) return true;
  // All that waits for the answer is none either, and what was taken for one meanwhile is open.
  std::erase_if(known_, [](const auto& known) { return known.second; });
  return known_[v] = false;
}

/// Of an argument of one of the regions.
bool RowCounts::is_carried_by(const Inst* loop, const Value* v) {
  const Inst* tested = loop->region(0)->terminator();
  if (v->region == loop->region(1)) return is_integer(tested->operand(1 + v->index));
  return is_integer(loop->operand(v->index)) &&
         is_integer(loop->region(1)->terminator()->operand(v->index));
}

bool RowCounts::is_computed(const Value* v) {
  const auto all = [&](const Inst* inst) {
    return std::ranges::all_of(inst->operands, [&](const Use& u) { return is_integer(u.value); });
  };
  if (!v->inst) {
    const Inst* of = v->region->parent;
    if (!of) return false;
    if (of->is(Op::while_)) return is_carried_by(of, v);
    if (of->is(Op::parallel) || v->index == 0) return are_bounds(of);
    return is_integer(of->operand(2 + v->index)) &&
           is_integer(v->region->terminator()->operand(v->index - 1));
  }
  const Inst* inst = v->inst;
  switch (inst->op) {
    case Op::load:
      return !written_.contains(kernel_.bindings[inst->binding()].alias_class) && all(inst);
    case Op::if_:
      return is_integer(inst->operand(0)) &&
             std::ranges::all_of(inst->regions, [&](const Region* r) {
               return is_integer(r->terminator()->operand(v->index));
             });
    case Op::loop:
      return are_bounds(inst) && is_integer(inst->operand(3 + v->index)) &&
             is_integer(inst->region(0)->terminator()->operand(v->index));
    case Op::while_:
      return are_bounds(inst) && is_integer(inst->region(0)->terminator()->operand(1 + v->index));
    case Op::iteration: return true;
    default:
      return (has(inst->op, flag::pure) || inst->is(Op::extent) || inst->is(Op::first)) &&
             all(inst);
  }
}

}  // namespace quern::autodiff
