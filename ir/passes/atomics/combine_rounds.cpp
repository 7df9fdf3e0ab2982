#include "ir/passes/atomics/combine_rounds.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "ir/passes/atomics/atomic_rules.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

using Updates = std::vector<Inst*>;  ///< of one location, in order

bool is_same_kind(const Inst* a, const Inst* b) {
  return b->is(Op::atomic) && a->kind == b->kind && a->elem == b->elem && !b->used();
}

class Combiner {
 public:
  explicit Combiner(Kernel& kernel) : kernel_(kernel), b_(kernel) { effects_.emplace(kernel); }

  void run(Region* region) {
    for (Inst* inst : *region) {
      for (Region* inner : inst->regions) run(inner);
      if (inst->is(Op::loop) || inst->is(Op::while_)) combine(inst);
    }
  }

 private:
  void combine(Inst* loop) {
    std::vector<Inst*> touching;
    std::vector<Updates> locations;
    const size_t most = worth_carrying(loop);
    for (Region* region : loop->regions)
      walk(region, [&](Inst* inst) {
        if (is_pure(inst->op) || !inst->regions.empty()) return;
        touching.push_back(inst);
        if (stays(loop, inst)) add(inst, locations, most);
      });
    std::erase_if(locations, [&](const Updates& all) { return !is_alone(all, touching); });
    if (locations.empty()) return;
    came_.clear();
    for (const Updates& all : locations) replace(loop, all);
    effects_.emplace(kernel_);
  }

  /// May the updates of all rounds be one?
  bool stays(const Inst* loop, const Inst* inst) const {
    if (!inst->is(Op::atomic) || inst->used() || !has_identity(inst->atomic())) return false;
    if (kernel_.modes.strict && rounds(inst->atomic(), inst->elem)) return false;
    const Binding& to = kernel_.bindings[inst->binding()];
    if (to.kind != Binding::field || !to.components[inst->component()].exact) return false;
    for (size_t k = 0; k < Effects::indices(inst); k++) {
      const Value* v = inst->operand(k);
      for (const Region* region : loop->regions)
        if (encloses(region, v->inst ? v->inst->parent : v->region)) return false;
    }
    return true;
  }

  static void add(Inst* inst, std::vector<Updates>& locations, size_t most) {
    const auto known = std::ranges::find_if(locations, [&](const Updates& all) {
      return Effects::same_element(all[0], inst) && is_same_kind(all[0], inst);
    });
    if (known != locations.end())
      known->push_back(inst);
    else if (locations.size() < most)
      locations.push_back({inst});
  }

  bool is_alone(const Updates& all, const std::vector<Inst*>& touching) {
    return std::ranges::none_of(touching, [&](const Inst* inst) {
      if (is_same_kind(all[0], inst)) return false;
      return (has(inst->op, flag::writes) && effects_->may_change(inst, all[0])) ||
             effects_->may_see(inst, all[0]);
    });
  }

  void replace(Inst* loop, const Updates& all) {
    const Inst* like = all[0];
    b_.before(loop).at(like->loc);
    Value *sum = b_.slot(like->elem), *came = came_to(loop, all);
    b_.put(sum, b_.constant(like->elem, identity(like->atomic(), like->elem)));
    b_.before(loop->next);
    if (came) {
      Inst* branch = b_.if_(came->type == Type::slot ? b_.get(came) : came);
      b_.at_end(branch->region(1)).yield();
      b_.at_end(branch->region(0));
      update(like, sum);
      b_.yield();
    } else {
      update(like, sum);
    }
    for (Inst* inst : all) {
      b_.before(inst).at(inst->loc);
      Value* v = inst->operand(Effects::indices(inst));
      Value* next = b_.binary(operation(inst->atomic(), inst->elem), b_.get(sum), v);
      if (rounds(inst->atomic(), inst->elem)) next->inst->kind |= reassociate;
      b_.put(sum, next);
      inst->erase();
    }
  }

  /// Whether a round comes to one of them: a value, or a slot where rounds decide; null where one does.
  Value* came_to(Inst* loop, const Updates& all) {
    std::vector<Region*> regions;
    for (const Inst* inst : all)
      if (std::ranges::find(regions, inst->parent) == regions.end())
        regions.push_back(inst->parent);
    if (loop->is(Op::loop) && std::ranges::find(regions, loop->region(0)) != regions.end())
      return has_rounds(loop) ? nullptr : b_.lt(loop->operand(0), loop->operand(1));
    const auto known = std::ranges::find(came_, regions, &Came::regions);
    if (known != came_.end()) return known->any;
    Inst* point = b_.point();
    Value* any = b_.slot(Type::b1);
    for (Region* region : regions) b_.before(region->first).put(any, b_.boolean(true));
    b_.before(point);
    came_.push_back({std::move(regions), any});
    return any;
  }

  void update(const Inst* like, Value* sum) {
    std::vector<Value*> index;
    for (size_t k = 0; k < Effects::indices(like); k++) index.push_back(like->operand(k));
    Value* v = b_.get(sum);
    Inst* made =
        b_.atomic(like->atomic(), like->binding(), like->component(), like->elem, index, {&v, 1});
    made->site = like->site;
  }

  /// A slot that says whether a round of the loop came to one of these regions.
  struct Came {
    std::vector<Region*> regions;
    Value* any;
  };

  Kernel& kernel_;
  Builder b_;
  std::optional<Effects> effects_;
  std::vector<Came> came_;
};

}  // namespace

void combine_rounds(Kernel& kernel) {
  if (kernel.modes.checked) return;
  for (Task& task : kernel.tasks) Combiner(kernel).run(task.body);
}

}  // namespace quern::ir
