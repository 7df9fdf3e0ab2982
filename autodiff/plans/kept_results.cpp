#include "autodiff/plans/kept_results.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/plans/costs.h"
#include "autodiff/plans/row_counts.h"
#include "autodiff/plans/wanted.h"

namespace quern::autodiff {

using namespace ir;

namespace {

class Chooser {
 public:
  Chooser(const Kernel& kernel, const Inst* parallel, const Activity& active, const Slopes& slopes,
          const LoopPlans& plans, Augment where)
      : parallel_(parallel),
        iteration_(parallel->region(0)),
        plans_(plans),
        where_(where),
        wanted_(kernel, {iteration_}, active, slopes, none_, [](const Inst*) { return false; }) {}

  std::vector<KeptResult> run() {
    size_t number = 0;
    for (const Inst* inst : *iteration_) order_[inst] = number++;
    for (const Inst* inst : *iteration_) {
      if (inst->is(Op::slot) && inst->imm > 1) consider_array(inst);
      if (inst->is(Op::loop) && is_run_for_results(inst)) consider_results(inst);
    }
    if (iterations(parallel_) * spares_ < to_make_a_kernel && where_ != Augment::wherever_possible)
      return {};
    tell();
    return std::move(kept_);
  }

 private:
  /// Directly in the iteration, it or what it is in.
  const Inst* outermost(const Inst* inst) const {
    while (inst->parent != iteration_) inst = inst->parent->parent;
    return inst;
  }

  bool is_run_for_results(const Inst* loop) const {
    const LoopPlan& plan = plans_.of(loop);
    return plan.way == LoopPlan::computed || plan.way == LoopPlan::in_order;
  }

  void consider_array(const Inst* slot) {
    size_t last_put = 0, first_get = order_.size();
    bool is_wanted = false, is_covered = false;
    std::unordered_set<const Inst*> fillers;
    for (const Use* use = slot->result()->uses; use; use = use->next) {
      const Inst* user = use->user;
      const Inst* around = outermost(user);
      if (user->is(Op::get)) {
        first_get = std::min(first_get, order_.at(around));
        is_wanted = is_wanted || wanted_(user->result());
      } else {
        if (!around->is(Op::loop) || !is_run_for_results(around)) return;
        last_put = std::max(last_put, order_.at(around));
        is_covered = is_covered || covers(user, slot->imm);
        fillers.insert(around);
      }
    }
    if (!is_wanted || !is_covered || last_put >= first_get) return;
    double spares = 0;
    for (const Inst* loop : fillers) spares += cost(loop);
    add({{slot->result(), parallel_, slot->imm, slot->elem}}, spares);
  }

  /// All that are wanted of one loop, or none.
  void consider_results(const Inst* loop) {
    std::vector<KeptResult> all;
    for (const Value& v : loop->results)
      if (wanted_(&v)) all.push_back({&v, parallel_, 1, v.type});
    if (!all.empty()) add(all, cost(loop));
  }

  /// Is it of each of so many elements once, in a loop over them?
  bool covers(const Inst* put, uint64_t elements) const {
    const Inst* loop = put->parent->parent;
    if (!loop->is(Op::loop) || loop->parent != iteration_ || put->operand_count() < 3) return false;
    const Value* index = put->operand(1);
    while (index->inst && index->inst->is(Op::convert)) {
      if (!holds(index->type, elements)) return false;
      index = index->inst->operand(0);
    }
    const auto is = [&](size_t k, uint64_t v) {
      const Inst* made = loop->operand(k)->inst;
      return made && made->is(Op::constant) && made->imm == v;
    };
    return index == loop->region(0)->arg(0) && is(0, 0) && is(1, elements) && is(2, 1);
  }

  /// Is each of so many numbers from 0 on another one of this type?
  static bool holds(Type type, uint64_t numbers) {
    return is_int(type) && (numbers - 1) >> (bit_width(type) - 1) == 0;
  }

  void add(const std::vector<KeptResult>& all, double spares) {
    double bytes = 0;
    for (const KeptResult& kept : all) bytes += double(kept.elements) * byte_size(kept.type);
    if (spares < to_keep_byte * bytes && where_ != Augment::wherever_possible) return;
    kept_.insert(kept_.end(), all.begin(), all.end());
    spares_ += spares;
  }

  void tell() const {
    for (const KeptResult& kept : kept_) {
      const std::string array = "an array of " + std::to_string(kept.elements) + " elements";
      dump_plan(kept.value->inst->loc,
                "the primal's launch keeps " + (kept.elements > 1 ? array : "a loop's result"));
    }
  }

  const Inst* const parallel_;
  const Region* const iteration_;
  const LoopPlans& plans_;
  const Augment where_;
  const LoggedReads none_;
  const Wanted wanted_;
  std::unordered_map<const Inst*, size_t> order_;
  std::vector<KeptResult> kept_;
  double spares_ = 0;
};

}  // namespace

std::vector<KeptResult> choose_kept_results(const Kernel& kernel, const Activity& active,
                                            const Slopes& slopes, const LoopPlans& plans,
                                            Augment where) {
  std::vector<KeptResult> all;
  RowCounts counts(kernel);
  for (const Inst* inst : *kernel.body) {
    if (!inst->is(Op::parallel) || !counts.is_by_integers(inst)) continue;
    const std::vector<KeptResult> kept = Chooser(kernel, inst, active, slopes, plans, where).run();
    all.insert(all.end(), kept.begin(), kept.end());
  }
  return all;
}

}  // namespace quern::autodiff
