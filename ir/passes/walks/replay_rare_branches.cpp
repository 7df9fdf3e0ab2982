#include "ir/passes/walks/replay_rare_branches.h"

#include <algorithm>
#include <unordered_set>

#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "ir/passes/walks/strips.h"

namespace quern::ir {

namespace {

class Replay : Strips {
 public:
  Replay(Kernel& kernel, Inst* walk, int64_t strip)
      : Strips(kernel, walk, strip), effects_(kernel) {
    for (Inst* inst : *body_)
      if (is_rare(inst)) branches_.push_back(inst);
  }

  /// Changes the walk where it has the form; it is gone then.
  void run() {
    if (branches_.empty() || !has_form() || !may_be_repeated() || !keeps_its_places()) return;
    b_.before(walk_).at(walk_->loc);
    begin_strips();
    where(usual(), [&] { rare(); });
    b_.yield();
    walk_->erase();
  }

 private:
  bool has_form() const {
    if (!walk_->results.empty() || !is_constant(walk_->operand(2), 1)) return false;
    for (const Inst* inst : *body_)
      if (inst->is(Op::slot)) return false;
    return std::ranges::all_of(branches_, is_usually_pure);
  }

  /// Does an iteration do the same when it runs a second time? Fields of class 0 may be any.
  bool may_be_repeated() {
    const Touched all = effects_.of(body_);
    return !effects_.may_overlap(all.writes, all.reads);
  }

  /// Do the same places get written, and read, whatever the rare branches give? Their results may
  /// become stored values, nothing that says where or whether to store.
  bool keeps_its_places() const {
    std::unordered_set<const Value*> doubtful;
    for (const Inst* inst : *body_) {
      bool doubt = is_rare(inst);
      outer_operands(inst, [&](Value* v) { doubt |= doubtful.contains(v); });
      if (!doubt) continue;
      if (!inst->regions.empty() && !is_rare(inst)) return false;
      if (inst->is(Op::read) || inst->is(Op::get) || inst->is(Op::put)) return false;
      if (inst->is(Op::write) && doubtful.contains(inst->operand(0))) return false;
      for (const Value& v : inst->results) doubtful.insert(&v);
    }
    return true;
  }

  /// All iterations of the strip the usual way; whether any of them wants a rare branch.
  Value* usual() {
    Value* none = b_.boolean(false);
    return each(parallel_walk, {&none, 1}, [&](std::span<Value> carried) {
      for (const Inst* inst : *body_) {
        if (inst == body_->last) break;
        if (is_rare(inst))
          take_usual(inst);
        else
          copy(inst);
      }
      return std::vector{b_.binary(Op::bit_or, &carried[0], wants_rare())};
    })[0];
  }

  /// The pure region of a branch in its place, in the part being made.
  void take_usual(const Inst* branch) {
    const Region* region = branch->region(1);
    copy_all(region);
    for (size_t k = 0; k < branch->results.size(); k++)
      map_[branch->result(k)] = need(region->last->operand(k));
  }

  /// Does the iteration take any rare branch? What follows a first one does not matter then.
  Value* wants_rare() {
    Value* any = nullptr;
    for (const Inst* branch : branches_) {
      Value* one = need(branch->operand(0));
      any = any ? b_.binary(Op::bit_or, any, one) : one;
    }
    return any;
  }

  void rare() {
    each(0, {}, [&](std::span<Value>) {
      where(wants_rare(), [&] { copy_all(body_); });
      return std::vector<Value*>();
    });
  }

  Effects effects_;
  std::vector<Inst*> branches_;
};

}  // namespace

void replay_rare_branches(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  for (Inst* walk : walks_of(kernel)) Replay(kernel, walk, target.strip).run();
}

}  // namespace quern::ir
