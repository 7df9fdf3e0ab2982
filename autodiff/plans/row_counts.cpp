#include "autodiff/plans/row_counts.h"

#include <unordered_map>
#include <utility>

namespace quern::autodiff {

using namespace ir;

RowCounts::RowCounts(const Kernel& kernel) : kernel_(kernel) {
  walk(kernel.body, [&](const Inst* inst) {
    if (has(inst->op, flag::writes) && accesses_element(inst->op))
      written_.insert(kernel.bindings[inst->binding()].alias_class);
  });
}

bool RowCounts::is_by_integers(const Inst* inst) {
  Values open;
  add_bounds(inst, open);
  for (const Region* r = inst->parent; r->parent; r = r->parent->parent)
    add_bounds(r->parent, open);
  return are_integers(std::move(open));
}

/// Adds what decides how often the instruction's regions run.
void RowCounts::add_bounds(const Inst* inst, Values& open) {
  const auto add = [&](size_t count) {
    for (size_t k = 0; k < count; k++) open.push_back(inst->operand(k));
  };
  switch (inst->op) {
    case Op::if_: return add(1);
    case Op::loop: return add(3);
    case Op::parallel: return add(inst->operand_count());
    case Op::while_: return open.push_back(inst->region(0)->terminator()->operand(0));
    default: return;
  }
}

/// Are they, and all that they are computed from? What a loop carries is one where it begins as one
/// and each round makes one of one.
bool RowCounts::are_integers(Values open) {
  std::unordered_map<const Value*, const Value*> wanted_by;
  const auto keep_new = [&](size_t first, const Value* by) {
    size_t end = first;
    for (size_t k = first; k < open.size(); k++)
      if (wanted_by.try_emplace(open[k], by).second) open[end++] = open[k];
    open.resize(end);
  };
  keep_new(0, nullptr);
  while (!open.empty()) {
    const Value* v = open.back();
    open.pop_back();
    if (integers_.contains(v)) continue;
    const size_t before = open.size();
    if (is_float(v->type) || others_.contains(v) || !add_sources(v, open)) {
      for (; v; v = wanted_by.at(v)) others_.insert(v);
      return false;
    }
    keep_new(before, v);
  }
  for (const auto& [v, by] : wanted_by) integers_.insert(v);
  return true;
}

/// Adds what the value is computed from. False: from something else than integers.
bool RowCounts::add_sources(const Value* v, Values& open) const {
  if (v->inst) return add_sources_of_result(v, open);
  if (!v->region->parent) return false;
  add_sources_of_argument(v, open);
  return true;
}

void RowCounts::add_sources_of_argument(const Value* v, Values& open) {
  const Inst* of = v->region->parent;
  if (of->is(Op::while_)) {
    const Inst* tested = of->region(0)->terminator();
    if (v->region == of->region(1)) return open.push_back(tested->operand(1 + v->index));
    open.push_back(of->operand(v->index));
    open.push_back(of->region(1)->terminator()->operand(v->index));
  } else if (of->is(Op::parallel) || v->index == 0) {
    add_bounds(of, open);
  } else {
    open.push_back(of->operand(2 + v->index));
    open.push_back(v->region->terminator()->operand(v->index - 1));
  }
}

bool RowCounts::add_sources_of_result(const Value* v, Values& open) const {
  const Inst* inst = v->inst;
  switch (inst->op) {
    case Op::if_:
      add_bounds(inst, open);
      for (const Region* r : inst->regions) open.push_back(r->terminator()->operand(v->index));
      return true;
    case Op::loop:
      add_bounds(inst, open);
      open.push_back(inst->operand(3 + v->index));
      open.push_back(inst->region(0)->terminator()->operand(v->index));
      return true;
    case Op::while_:
      add_bounds(inst, open);
      open.push_back(inst->region(0)->terminator()->operand(1 + v->index));
      return true;
    case Op::iteration: return true;
    case Op::load:
      if (written_.contains(kernel_.bindings[inst->binding()].alias_class)) return false;
      break;
    default:
      if (!has(inst->op, flag::pure) && !inst->is(Op::extent) && !inst->is(Op::first)) return false;
  }
  for (const Use& use : inst->operands) open.push_back(use.value);
  return true;
}

}  // namespace quern::autodiff
