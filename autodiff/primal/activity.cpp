#include "autodiff/primal/activity.h"

#include <algorithm>
#include <utility>

#include "autodiff/primal/combined.h"
#include "autodiff/primal/moves.h"
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
  if ((is_float(from->type) || from->type == Type::slot) && active_.contains(from))
    changed_ |= active_.insert(to).second;
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
    case Op::bitcast: return false;
    default: break;
  }
  if (info(inst->op).rule == OperandRule::special || is_flat(inst->op)) return false;
  return takes_active(inst);
}

void Activity::visit(const Inst* inst) {
  if (inst->is(Op::apply)) {
    if (takes_active(inst))
      for (const Value& v : inst->results)
        if (is_float(v.type)) changed_ |= active_.insert(&v).second;
    return;
  }
  if (each_move(inst, [&](const Value* from, const Value* to) { pass(from, to); })) return;
  if (!inst->results.empty() && is_float(inst->type()) && makes_active(inst))
    changed_ |= active_.insert(inst->result()).second;
}

namespace {

/// The floats that have a part in something.
class Parts {
 public:
  Parts(const Kernel& kernel, const std::vector<bool>& inputs) : inputs_(inputs) {
    parts_.add_operands(kernel.body->terminator());
    parts_.find(kernel.body, [&](const Inst* inst) { visit(inst); });
  }
  bool contains(const Value* v) const { return parts_.contains(v); }

 private:
  /// What a loop carries is one variable: that has a part at all places, or at none.
  void share(const Inst* loop) {
    for (size_t k = 0; k < loop->results.size(); k++) {
      std::vector<const Value*> places = {loop->result(k)};
      for (const Region* region : loop->regions)
        places.push_back(region->arg(region->args.size() - loop->results.size() + k));
      if (std::ranges::any_of(places, [&](const Value* v) { return contains(v); }))
        for (const Value* v : places) parts_.add(v);
    }
  }

  void visit(const Inst* inst) {
    const auto has_part = [&](const Value& v) { return contains(&v); };
    switch (inst->op) {
      case Op::store:
        if (inputs_[inst->binding()]) parts_.add(inst->operands.back().value);
        return;
      case Op::atomic:
        if (inputs_[inst->binding()] && !is_combined(inst)) parts_.add_operands(inst);
        return;
      case Op::bitcast: return parts_.add_operands(inst);
      case Op::apply:
        if (std::ranges::none_of(inst->results, has_part)) return;
        for (const Value& v : inst->results) parts_.add(&v);  // one rule gives them all
        return parts_.add_operands(inst);
      case Op::reduce:
        if (is_combined(inst)) return;
        break;
      case Op::loop:
      case Op::while_: share(inst); break;
      default: break;
    }
    if (!parts_.follow_moves(inst) && std::ranges::any_of(inst->results, has_part))
      parts_.add_operands(inst);
  }

  const std::vector<bool>& inputs_;
  Sources parts_;
};

}  // namespace

void Activity::keep_what_has_a_part(const Kernel& kernel) {
  const Parts parts(kernel, inputs_);
  std::erase_if(active_, [&](const Value* v) { return !parts.contains(v); });
}

}  // namespace quern::autodiff
