#include "ir/passes/walks/separate_sums.h"

#include <algorithm>
#include <unordered_set>

#include "ir/passes/walks/strips.h"

namespace quern::ir {

namespace {

bool adds_in_any_order(const Inst* inst) {
  return inst->is(Op::add) && (is_int(inst->type()) || (inst->kind & reassociate));
}

/// Is `arg`, which a region begins with, only added to until it is `last`? Then each value on the way
/// has one use.
bool is_only_added_to(const Value* arg, const Value* last) {
  for (const Value* v = arg; v != last;) {
    if (!v->uses || v->uses->next) return false;
    const Inst* user = v->uses->user;
    if (user->is(Op::loop)) {
      size_t k = 3;
      while (k < user->operand_count() && user->operand(k) != v) k++;
      if (k == user->operand_count()) return false;
      const Region* body = user->region(0);
      if (!is_only_added_to(body->arg(k - 2), body->last->operand(k - 3))) return false;
      v = user->result(k - 3);
    } else if (user->regions.empty() && !user->results.empty() && adds_in_any_order(user)) {
      v = user->result();
    } else {
      return false;
    }
  }
  return last->uses && !last->uses->next;  // what the region ends with
}

class Separator {
 public:
  Separator(Kernel& kernel, Inst* walk) : b_(kernel), walk_(walk) {}

  void run() {
    for (const Value& v : walk_->region(0)->args.subspan(1)) carried_.insert(&v);
    for (Inst* inst : *walk_->region(0)) {
      const bool uses = std::ranges::any_of(
          inst->operands, [&](const Use& use) { return carried_.contains(use.value); });
      if (!uses) continue;
      if (inst->is(Op::loop)) separate(inst);
      for (const Value& v : inst->results)
        if (!separated_.contains(&v)) carried_.insert(&v);
    }
  }

 private:
  void separate(Inst* loop) {
    for (size_t k = 0; k < loop->results.size(); k++) {
      Value *init = loop->operand(3 + k), *result = loop->result(k);
      const Region* body = loop->region(0);
      if (!carried_.contains(init) || !result->uses ||
          !is_only_added_to(body->arg(k + 1), body->last->operand(k)))
        continue;
      b_.before(loop).at(loop->loc);
      Value* nothing = is_float(init->type) ? b_.real(init->type, -0.0) : b_.integer(init->type, 0);
      b_.after(loop);
      Inst* sum = b_.make(Op::add, {init->type}, {init, init});
      if (is_float(init->type)) sum->kind = reassociate;
      result->replace_with(sum->result());
      sum->operands[1].set(result);
      loop->operands[3 + k].set(nothing);
      separated_.insert(result);
      carried_.insert(sum->result());
    }
  }

  Builder b_;
  Inst* walk_;
  std::unordered_set<const Value*> carried_,
      separated_;  ///< what follows from what the walk carries
};

}  // namespace

void separate_sums(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  for (Task& task : kernel.tasks)
    for (Inst* walk : walks_of(task)) Separator(kernel, walk).run();
}

}  // namespace quern::ir
