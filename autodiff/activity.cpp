#include "autodiff/activity.h"

#include <algorithm>
#include <utility>

#include "autodiff/combined.h"
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

namespace {

/// The floats that have a part in something.
class Parts {
 public:
  Parts(const Kernel& kernel, const std::vector<bool>& inputs) : inputs_(inputs) {
    for (const Use& use : kernel.body->terminator()->operands) add(use.value);
    do {  // until what loops carry and slots keep is known
      changed_ = false;
      back(kernel.body);
    } while (changed_);
  }
  bool contains(const Value* v) const { return parts_.contains(v); }

 private:
  void add(const Value* v) {
    if (is_float(v->type) || v->type == Type::slot) changed_ |= parts_.insert(v).second;
  }
  void add_all(const Inst* inst) {
    for (const Use& use : inst->operands) add(use.value);
  }
  /// `from` becomes `to`.
  void pass(const Value* from, const Value* to) {
    if (contains(to)) add(from);
  }

  /// What a loop carries is one variable: where it has a part at one place it has at all.
  void share(std::initializer_list<const Value*> places,
             std::initializer_list<const Value*> sources) {
    const auto has_part = [&](const Value* v) { return contains(v); };
    if (std::ranges::none_of(places, has_part)) return;
    for (const Value* v : places) add(v);
    for (const Value* v : sources) add(v);
  }

  void back(const Region* region) {
    for (const Inst* inst = region->last; inst; inst = inst->prev) {
      visit(inst);
      for (size_t k = inst->regions.size(); k-- > 0;) back(inst->regions[k]);
    }
  }

  void visit(const Inst* inst) {
    const auto is_wanted = [&](const Value& v) { return contains(&v); };
    switch (inst->op) {
      case Op::store:
        if (inputs_[inst->binding()]) add(inst->operands.back().value);
        return;
      case Op::atomic:
        if (inputs_[inst->binding()] && !is_combined(inst)) add_all(inst);
        return;
      case Op::reduce:
        if (!is_combined(inst)) pass(inst->operand(1), inst->operand(0));
        return;
      case Op::put: return pass(inst->operands.back().value, inst->operand(0));
      case Op::get: return pass(inst->operand(0), inst->result());
      case Op::bitcast: return add_all(inst);
      case Op::apply:
        if (std::ranges::none_of(inst->results, is_wanted)) return;
        for (const Value& v : inst->results) add(&v);  // one rule gives them all
        return add_all(inst);
      case Op::if_:
        for (const Region* region : inst->regions)
          for (size_t k = 0; k < inst->results.size(); k++)
            pass(region->terminator()->operand(k), inst->result(k));
        return;
      case Op::loop: {
        const Region* body = inst->region(0);
        for (size_t k = 0; k < inst->results.size(); k++)
          share({inst->result(k), body->arg(1 + k)},
                {body->terminator()->operand(k), inst->operand(3 + k)});
        return;
      }
      case Op::while_: {
        const Region *condition = inst->region(0), *body = inst->region(1);
        for (size_t k = 0; k < inst->results.size(); k++)
          share({inst->result(k), condition->arg(k), body->arg(k)},
                {condition->terminator()->operand(1 + k), body->terminator()->operand(k),
                 inst->operand(k)});
        return;
      }
      default:
        if (std::ranges::any_of(inst->results, is_wanted)) add_all(inst);
    }
  }

  const std::vector<bool>& inputs_;
  std::unordered_set<const Value*> parts_;
  bool changed_ = false;
};

}  // namespace

void Activity::keep_what_has_a_part(const Kernel& kernel) {
  const Parts parts(kernel, inputs_);
  std::erase_if(active_, [&](const Value* v) { return !parts.contains(v); });
}

}  // namespace quern::autodiff
