#include "ir/passes/optimise/dead_code.h"

#include "ir/analysis/facts.h"
#include "ir/passes/walks/reshape.h"

namespace quern::ir {

namespace {

class Sweeper {
 public:
  explicit Sweeper(Kernel& kernel) : kernel_(kernel), b_(kernel) {}

  bool run(Region* root) {
    clear(root);
    for (const Use& use : root->last->operands) need(use.value);
    walk(root, [&](Inst* inst) {
      if (has_effect(inst)) need(inst);
    });
    while (!work_.empty()) {
      Value* v = work_.back();
      work_.pop_back();
      follow(v);
    }
    sweep(root);
    return changed_;
  }

 private:
  /// What is marked is needed.
  static void clear(Region* region) {
    for (Value& v : region->args) v.mark = false;
    for (Inst* inst = region->first; inst; inst = inst->next) {
      inst->mark = false;
      for (Value& v : inst->results) v.mark = false;
      for (Region* r : inst->regions) clear(r);
    }
  }

  /// An effect beyond the root's slots and values.
  bool has_effect(const Inst* inst) {
    if (has(inst->op, flag::control | flag::ends)) return false;
    return !changes_slot(inst) && !removable(kernel_, inst);
  }

  /// Lives with its slot. (A task's reduce names no slot: it is an effect.)
  static bool changes_slot(const Inst* inst) {
    return inst->is(Op::put) || (inst->is(Op::reduce) && inst->operand(0)->type == Type::slot);
  }

  void need(Value* v) {
    if (v->mark) return;
    v->mark = true;
    work_.push_back(v);
  }

  void need(Inst* inst) {
    if (inst->mark) return;
    inst->mark = true;
    if (inst->parent->parent) need(inst->parent->parent);
    if (inst->is(Op::if_)) {
      need(inst->operand(0));
    } else if (inst->is(Op::loop)) {
      for (size_t k = 0; k < 3; k++) need(inst->operand(k));
    } else if (inst->is(Op::while_)) {
      need(inst->region(0)->last->operand(0));
    } else {
      for (const Use& use : inst->operands) need(use.value);
    }
    if (inst->is(Op::slot))
      for (Use* use = inst->result()->uses; use; use = use->next)
        if (changes_slot(use->user)) need(use->user);
  }

  /// The k-th carried value of a loop: what enters, what comes back, and everything named by it.
  void need_carried(Inst* loop, size_t k) {
    size_t fixed = loop->is(Op::loop) ? 3 : 0;
    need(loop->operand(fixed + k));
    need(loop->result(k));
    for (Region* r : loop->regions) {
      size_t first = loop->is(Op::loop) ? 1 : 0;
      need(r->arg(first + k));
      size_t skip = loop->is(Op::while_) && r == loop->region(0) ? 1 : 0;
      need(r->last->operand(skip + k));
    }
  }

  void follow(Value* v) {
    Inst* owner = v->inst ? v->inst : v->region->parent;
    if (!owner) return;
    need(owner);
    if (v->inst && owner->is(Op::if_)) {
      for (Region* r : owner->regions) need(r->last->operand(v->index));
    } else if (owner->is(Op::while_)) {
      need_carried(owner, v->index);
    } else if (owner->is(Op::loop)) {
      if (v->inst)
        need_carried(owner, v->index);
      else if (v->index > 0)
        need_carried(owner, v->index - 1);
    }
  }

  std::vector<bool> live(std::span<Value> values, size_t always) {
    std::vector<bool> keep;
    for (size_t k = 0; k < values.size(); k++) keep.push_back(k < always || values[k].mark);
    return keep;
  }

  /// Drops the operands of the yields that feed dead results, before what they name goes.
  void trim_yield(Inst* owner, Region* r, const std::vector<bool>& keep) {
    std::vector<bool> operands = keep;
    if (owner->is(Op::while_) && r == owner->region(0)) operands.insert(operands.begin(), true);
    keep_operands(b_, r->last, operands);
  }

  void sweep(Region* region) {
    Inst* before = nullptr;
    for (Inst* inst = region->last; inst; inst = before) {
      before = inst->prev;
      if (has(inst->op, flag::ends)) continue;
      if (!inst->mark) {
        inst->erase();
        changed_ = true;
        continue;
      }
      if (!inst->regions.empty()) sweep_owner(inst);
    }
  }

  void sweep_owner(Inst* inst) {
    std::vector<bool> keep = live(inst->results, 0);
    bool all = true;
    for (bool k : keep) all = all && k;
    if (!all) {
      changed_ = true;
      for (Region* r : inst->regions) trim_yield(inst, r, keep);
    }
    for (Region* r : inst->regions) sweep(r);
    if (all) return;
    keep_results(*kernel_.arena, inst, keep);
    if (inst->is(Op::if_)) return;
    size_t fixed = inst->is(Op::loop) ? 3 : 0;
    std::vector<bool> operands(fixed, true);
    operands.insert(operands.end(), keep.begin(), keep.end());
    keep_operands(b_, inst, operands);
    std::vector<bool> args(inst->is(Op::loop) ? 1 : 0, true);
    args.insert(args.end(), keep.begin(), keep.end());
    for (Region* r : inst->regions) keep_args(*kernel_.arena, r, args);
  }

  Kernel& kernel_;
  Builder b_;
  std::vector<Value*> work_;
  bool changed_ = false;
};

}  // namespace

bool dead_code(Kernel& kernel, Region* root) { return Sweeper(kernel).run(root); }

bool dead_code(Kernel& kernel) {
  bool changed = false;
  for (Region* root : roots(kernel)) changed = dead_code(kernel, root) || changed;
  return changed;
}

}  // namespace quern::ir
