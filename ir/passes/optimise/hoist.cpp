#include "ir/passes/optimise/hoist.h"

#include <algorithm>
#include <unordered_map>

#include "ir/analysis/facts.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

class Hoister {
 public:
  explicit Hoister(Kernel& kernel) : kernel_(kernel), b_(kernel) {}

  void run(Region* root, bool is_task) {
    top_ = is_task ? root->first : nullptr;
    visit(root);
  }

 private:
  void visit(Region* region) {
    levels_[region] = loops_.size();
    for (Inst* inst : *region) {
      if (inst->regions.empty()) {
        consider(inst);
        continue;
      }
      size_t floor = floor_, branch = branch_;
      bool repeats = inst->is(Op::loop) || inst->is(Op::while_);
      if (inst->is(Op::parallel)) floor_ = branch_ = loops_.size();
      if (inst->is(Op::if_)) branch_ = loops_.size();
      if (repeats) loops_.push_back(inst);
      for (Region* r : inst->regions) visit(r);
      if (repeats) loops_.pop_back();
      floor_ = floor;
      branch_ = branch;
    }
  }

  void consider(Inst* inst) {
    if (top_ && (inst->is(Op::arg) || inst->is(Op::builtin) || inst->is(Op::constant))) {
      if (inst == top_)
        top_ = inst->next;
      else
        move(b_.before(top_), inst);
      return;
    }
    if (!is_pure(inst->op) || can_fail(kernel_, inst)) return;
    size_t to = costly(inst) ? branch_ : floor_;
    for (const Use& use : inst->operands) to = std::max(to, level(use.value));
    if (to == loops_.size()) return;
    const auto runs = [](const Inst* loop) { return loop->is(Op::loop) && has_rounds(loop); };
    const bool is_asked =
        to >= branch_ && std::all_of(loops_.begin() + ptrdiff_t(to), loops_.end(), runs);
    if (!is_asked && !run_unasked(kernel_, inst)) return;
    move(b_.before(loops_[to]), inst);
  }

  /// How many loops stand around the place where a value is made.
  size_t level(const Value* v) const { return levels_.at(v->inst ? v->inst->parent : v->region); }

  Kernel& kernel_;
  Builder b_;
  Inst* top_ = nullptr;  ///< task: what belongs at the top goes before this
  std::vector<Inst*> loops_;
  size_t floor_ = 0;   ///< loops outside the parallel loop we are in: nothing moves past them
  size_t branch_ = 0;  ///< loops outside the branch we are in: nothing costly moves past them
  std::unordered_map<const Region*, size_t> levels_;
};

}  // namespace

void hoist(Kernel& kernel) {
  if (kernel.body) Hoister(kernel).run(kernel.body, false);
  for (Function& f : kernel.callees) Hoister(kernel).run(f.body, false);
  for (Task& task : kernel.tasks) Hoister(kernel).run(task.body, true);
}

}  // namespace quern::ir
