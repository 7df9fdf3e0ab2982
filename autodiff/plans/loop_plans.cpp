#include "autodiff/plans/loop_plans.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <ranges>
#include <utility>

#include "autodiff/plans/costs.h"
#include "autodiff/plans/inverses.h"
#include "autodiff/plans/row_counts.h"
#include "autodiff/plans/sums.h"
#include "autodiff/plans/wanted.h"
#include "ir/analysis/effects.h"

namespace quern::autodiff {

using namespace ir;

namespace {

/// Rounds of a loop between constants that are kept in arrays: so many, or so many bytes.
constexpr int64_t most_in_arrays = 64;
constexpr uint64_t most_bytes_in_arrays = 4096;
/// What is kept beside what loops carry, of an iteration.
constexpr uint64_t most_bytes_beside = 16384;
/// Additions that keeping a value takes as long as, in arrays and in rows of a field. What takes
/// more to find by an inverse is kept too, but where nothing else is.
constexpr double to_keep = 8, to_keep_in_rows = 16;
constexpr double without_others = std::numeric_limits<double>::infinity();
/// From where on a branch pays that leaves a loop out which has no adjoints.
constexpr double to_ask = 16;

bool writes_floats(const Region* region) {
  bool writes = false;
  walk(const_cast<Region*>(region), [&](const Inst* inst) {
    writes |= (inst->is(Op::store) || inst->is(Op::atomic) || inst->is(Op::reduce) ||
               inst->is(Op::put)) &&
              is_float(inst->elem);
  });
  return writes;
}

size_t first_carried(const Inst* loop) { return loop->is(Op::loop) ? 1 : 0; }

bool is_choice_of(const Use* use, const Value* v) {
  const Inst* user = use->user;
  switch (user->op) {
    case Op::min:
    case Op::max:
    case Op::fmin:
    case Op::fmax: return true;
    case Op::select: return user->operand(0) != v;
    case Op::yield: {  // of a branch that it was made outside of
      const Inst* branch = user->parent->parent;
      return branch && branch->is(Op::if_) && v->inst->parent != user->parent;
    }
    default: return false;
  }
}

}  // namespace

uint64_t LoopPlan::bytes() const {
  uint64_t sum = 0;
  for (Type type : types) sum += byte_size(type);
  return sum;
}

bool are_plans_dumped() {
  const char* dump = std::getenv("QUERN_DUMP");
  return dump && std::strcmp(dump, "derivatives") == 0;
}

void dump_plan(Loc at, const std::string& what) {
  if (!are_plans_dumped()) return;
  const std::string line = std::string(at.file) + ":" + std::to_string(at.line) + ": " + what;
  std::fputs((line + "\n").c_str(), stderr);
}

LoopPlans::LoopPlans(const Kernel& kernel, const Activity& active, const Slopes& slopes,
                     const LoggedReads& logged, Augment augment)
    : kernel_(kernel),
      active_(active),
      slopes_(slopes),
      logged_(logged),
      augment_(augment),
      counts_(kernel) {
  for (const auto& [inst, slope] : slopes) are_slopes_.insert(slope);
  std::vector<const Inst*> structured;
  walk(kernel.body, [&](const Inst* inst) {
    if (inst->is(Op::loop) || inst->is(Op::while_) || inst->is(Op::if_)) structured.push_back(inst);
  });
  make(structured);
  for (const auto& [loop, plan] : plans_)
    if (plan.is_in_rows || (loop->is(Op::while_) && plan.way == LoopPlan::backwards))
      rows_vary_ |= !counts_.is_by_integers(loop);
  for (const auto& [read, row] : logged) rows_vary_ |= !counts_.is_by_integers(read);
  if (rows_vary_ && augment_ != Augment::never) {  // primal and reverse may round them differently
    augment_ = Augment::never;
    make(structured);
  }
  if (are_plans_dumped())
    for (const Inst* inst : structured) std::fputs(text(inst).c_str(), stderr);
}

/// Of loops and branches, the inner ones last.
void LoopPlans::make(const std::vector<const Inst*>& structured) {
  for (const Inst* inst : structured | std::views::reverse) {
    if (!inst->is(Op::if_)) {
      plans_[inst] = plan(inst);
      continue;
    }
    if (!has_part(inst, active_)) continue;
    for (const Region* r : inst->regions) {
      const Wanted wanted(kernel_, {r}, active_, slopes_, logged_,
                          [&](const Inst* i) { return may_keep(i->result(), to_keep); });
      branches_[r] = wanted.kept();
    }
  }
}

const std::vector<const Value*>& LoopPlans::kept_in(const Region* branch) const {
  static const std::vector<const Value*> nothing;
  const auto known = branches_.find(branch);
  return known == branches_.end() ? nothing : known->second;
}

bool LoopPlans::varies(const Inst* loop, size_t k) const {
  return active_(loop->result(k)) || std::ranges::any_of(loop->regions, [&](const Region* r) {
           return r->args.size() > first_carried(loop) + k &&
                  active_(r->arg(first_carried(loop) + k));
         });
}

LoopPlan LoopPlans::plan(const Inst* loop) {
  LoopPlan made;
  made.carried.assign(loop->results.size(), false);
  if (!has_part(loop, active_)) return made;
  if (is_sum(loop) && is_any_order(loop)) {
    made.way = LoopPlan::in_order;
    return made;
  }
  made.replacements = replacements(loop);
  made.way = made.replacements.empty() ? LoopPlan::backwards : LoopPlan::last_replacing;
  const int64_t rounds = loop->is(Op::loop) ? constant_rounds(loop) : -1;
  made.rounds = uint64_t(std::max<int64_t>(rounds, 1));
  for (const Region* r : loop->regions) made.cost += cost(r);
  keep_wanted(made, loop, nowhere);
  const uint64_t carried = made.rounds * made.bytes();
  const bool are_few = rounds >= 0 && (rounds <= most_in_arrays || carried <= most_bytes_in_arrays);
  if (made.way == LoopPlan::last_replacing) {
    made.is_in_rows = carried > 0 && !are_few;
  } else if (are_few && keeps_by_primal(made, loop)) {
    made.is_in_rows = true;
  } else if (are_few) {
    keep_wanted(made, loop, in_arrays);
    if (made.rounds * made.bytes() > most_bytes_beside) keep_wanted(made, loop, nowhere);
  } else if (carried > 0) {
    made.is_in_rows = true;
    keep_wanted(made, loop, in_rows);
  }
  return made;
}

void LoopPlans::keep_library_results() {
  uint64_t left = most_bytes_beside;
  walk(kernel_.body, [&](const Inst* inst) {
    const auto known = plans_.find(inst);
    if (known == plans_.end() || known->second.way != LoopPlan::in_order) return;
    // Others are not run before, but where a round of the loop around them is gone back through.
    const Inst* around = inst->parent->parent;
    if (around && !around->is(Op::parallel)) return;
    LoopPlan& plan = known->second;
    keep_library_results(plan, inst, left);
    left -= plan.rounds * plan.bytes();
    if (!plan.values.empty() && are_plans_dumped()) std::fputs(text(inst).c_str(), stderr);
  });
}

void LoopPlans::keep_library_results(LoopPlan& plan, const Inst* loop, uint64_t most_bytes) {
  const int64_t rounds = loop->is(Op::loop) ? constant_rounds(loop) : -1;
  if (rounds < 1) return;
  const Wanted wanted(kernel_, {loop->regions.begin(), loop->regions.end()}, active_, slopes_,
                      logged_, [this](const Inst* i) {
                        return (info(i->op).library || are_slopes_.contains(i->result())) &&
                               may_keep(i->result(), to_keep);
                      });
  plan.rounds = uint64_t(rounds);
  plan.values = wanted.kept();
  for (const Value* v : plan.values) plan.types.push_back(v->type);
  if (plan.bytes() == 0 || plan.rounds <= most_bytes / plan.bytes()) return;
  plan.values.clear();
  plan.types.clear();
}

/// Of rounds between constants: does the primal's launch keep them in rows, which goes through
/// memory, but spares running them again? Arrays of the iteration's own are nearer, but filled by
/// another run. If so, the plan is of these rows.
bool LoopPlans::keeps_by_primal(LoopPlan& plan, const Inst* loop) {
  const Inst* parallel = augment_ == Augment::never ? nullptr : alike_in(kernel_, loop);
  if (!parallel || !may_be_augmented(loop, parallel) || !counts_.is_by_integers(loop)) return false;
  keep_wanted(plan, loop, in_rows);
  if (plan.types.empty()) return false;
  const double spared = plan.cost - to_keep_byte * double(plan.bytes());
  return augment_ == Augment::wherever_possible ||
         iterations(parallel) * double(plan.rounds) * spared >= to_make_a_kernel;
}

/// Do all iterations of the parallel loop around it, that come to it, make the same of it, at no
/// more than a call of the math library?
bool LoopPlans::is_shared(const Value* v) {
  if (cost(v->inst) > library_call) return false;
  std::vector<const Inst*> loops;
  const Inst* around = v->inst->parent->parent;
  for (; around && !around->is(Op::parallel); around = around->parent->parent)
    if (around->is(Op::loop)) loops.push_back(around);
  if (!around) return false;
  Uniformity& uniform = uniform_.try_emplace(around, kernel_, around->region(0)).first->second;
  for (const Inst* loop : loops | std::views::reverse) {
    bool is_alike = true;
    for (size_t k = 0; k < 3; k++) is_alike = is_alike && uniform(loop->operand(k));
    if (is_alike) uniform.assume(loop->region(0)->arg(0));
  }
  return uniform(v);
}

void LoopPlans::keep_wanted(LoopPlan& plan, const Inst* loop, Beside where) {
  constexpr double costs[] = {without_others, to_keep, to_keep_in_rows};
  const double to_keep_it = costs[where];
  std::vector<const Inst*> passed_over;
  for (const Replacement& r : plan.replacements) passed_over.push_back(r.update);
  const Wanted wanted(
      kernel_, {loop->regions.begin(), loop->regions.end()}, active_, slopes_, logged_,
      [=, this](const Inst* i) {
        return may_keep(i->result(), to_keep_it) && !(where == in_rows && is_shared(i->result()));
      },
      passed_over);
  plan.values = wanted.kept();
  plan.types.clear();
  for (size_t k = 0; k < loop->results.size(); k++)
    plan.carried[k] = wanted(loop->region(0)->arg(first_carried(loop) + k));
  if (plan.way == LoopPlan::backwards)
    plan.inverted = found_by_inverses(
        loop, plan.carried, [&](const Region* steps) { return cost(steps) <= to_keep_it; });
  for (size_t k : plan.inverted) plan.carried[k] = false;
  for (size_t k = 0; k < loop->results.size(); k++)
    if (plan.carried[k]) plan.types.push_back(loop->result(k)->type);
  for (const Value* v : plan.values) plan.types.push_back(v->type);
}

std::vector<Replacement> LoopPlans::replacements(const Inst* loop) const {
  if (!loop->is(Op::loop) || writes_floats(loop->region(0))) return {};
  return replacements_of(loop, active_);
}

bool LoopPlans::is_sum(const Inst* loop) const {
  const Region* body = loop->regions.back();
  for (size_t k = 0; k < loop->results.size(); k++) {
    if (!varies(loop, k)) continue;
    const Value* arg = body->arg(first_carried(loop) + k);
    const bool is_plain =
        loop->is(Op::loop) || (is_passed_on(loop, k) && !loop->region(0)->arg(k)->uses->next);
    if (!is_plain || !is_only_added_to(arg, body->terminator()->operand(k))) return false;
  }
  return true;
}

namespace {
/// Of an element of a field, or of a slot.
struct Access {
  explicit Access(const Inst* of) : inst(of) {
    if (of->is(Op::get) || of->is(Op::put)) {
      slot = of->operand(0);
      first = 1;
      indices = of->operand_count() - (of->is(Op::get) ? 1 : 2);
      is_write = of->is(Op::put);
    } else {
      indices = Effects::indices(of);
      adds = of->is(Op::atomic) && of->atomic() == AtomicOp::add;
      is_write = of->is(Op::store) || (of->is(Op::atomic) && of->atomic() != AtomicOp::load);
    }
  }
  const Inst* inst = nullptr;
  const Value* slot = nullptr;
  size_t first = 0, indices = 0;
  bool is_write = false, adds = false;
};

/// Do they never name one element in different rounds of the loop?
bool are_of_one_round(const Inst* loop, const Access& a, const Access& b, Effects& effects) {
  const bool is_same = a.slot == b.slot && (a.slot || a.inst->binding() == b.inst->binding());
  if (!is_same)
    return a.slot || b.slot || !effects.may_overlap(a.inst->binding(), b.inst->binding());
  const Value* round = loop->is(Op::loop) ? loop->region(0)->arg(0) : nullptr;
  for (size_t k = 0; k < std::min(a.indices, b.indices); k++)
    if (round && a.inst->operand(a.first + k) == round && b.inst->operand(b.first + k) == round)
      return true;
  return false;
}
}  // namespace

/// May one go back through rounds in any order? Adding to adjoints has none; what takes and resets
/// them has, unless each round has elements of its own.
bool LoopPlans::is_any_order(const Inst* loop) const {
  std::vector<Access> all;
  bool any_order = !loop->is(Op::while_) || !writes_floats(loop->region(0));  // of a test
  const auto is_outside = [&](const Value* slot) {
    return std::ranges::none_of(loop->regions,
                                [&](const Region* r) { return encloses(r, slot->inst->parent); });
  };
  for (Region* r : loop->regions)
    walk(r, [&](const Inst* inst) {
      any_order = any_order && !inst->is(Op::parallel);
      const bool is_slot = inst->is(Op::get) || inst->is(Op::put);
      if (is_slot ? is_outside(inst->operand(0))
                  : accesses_element(inst->op) && is_float(inst->elem))
        all.emplace_back(inst);
    });
  Effects effects(kernel_);
  for (const Access& write : all) {
    if (!write.is_write) continue;
    for (const Access& other : all)
      any_order = any_order &&
                  ((write.adds && other.adds) || are_of_one_round(loop, write, other, effects));
  }
  return any_order;
}

/// Is it a loop that is run again for what going back through it wants, rounds of a While among
/// that?
bool LoopPlans::is_run_again(const Inst* inst) const {
  const auto known = plans_.find(inst);
  if (known == plans_.end()) return false;
  const LoopPlan& plan = known->second;
  if (plan.way == LoopPlan::last_replacing) return true;
  if (plan.way != LoopPlan::backwards) return false;
  return inst->is(Op::while_) || !plan.types.empty() || !plan.inverted.empty();
}

/// Is it worth keeping its value?
bool LoopPlans::may_keep(const Value* v, double to_keep_it) const {
  const Inst* inst = v->inst;
  if (inst->is(Op::if_) || inst->is(Op::get) || logged_.contains(inst)) return false;
  if (is_run_again(inst)) return false;
  for (const Region* r : inst->regions) {
    bool again = false;
    walk(const_cast<Region*>(r),
         [&](const Inst* i) { again |= i->is(Op::parallel) || is_run_again(i); });
    if (again) return false;
  }
  return (are_slopes_.contains(v) ? library_call : cost(inst)) > to_keep_it;
}

/// Of a round that is gone back through as its loop has chosen what it made: that is known by then.
bool LoopPlans::is_chosen_there(const Use* use) const {
  const Inst* around = use->user->parent->parent;
  const auto known = around ? plans_.find(around) : plans_.end();
  if (known == plans_.end()) return false;
  return std::ranges::any_of(known->second.replacements, [&](const Replacement& r) {
    return r.is_chosen() && r.update == use->user;
  });
}

bool LoopPlans::is_choice(const Inst* loop) const {
  bool writes = false;
  for (Region* r : loop->regions)
    walk(r, [&](const Inst* inst) {
      writes |= inst->is(Op::store) || inst->is(Op::atomic) || inst->is(Op::reduce) ||
                (inst->is(Op::put) && !encloses(loop->regions[0], inst->operand(0)->inst->parent) &&
                 !encloses(loop->regions.back(), inst->operand(0)->inst->parent));
    });
  if (writes || cost(loop) < to_ask) return false;
  bool varies = false;
  for (const Value& v : loop->results) {
    if (!active_(&v)) continue;
    varies = true;
    for (const Use* use = v.uses; use; use = use->next)
      if (!is_choice_of(use, &v) || is_chosen_there(use)) return false;
  }
  return varies;
}

// ---- for who looks

std::string LoopPlans::text(const Inst* inst) const {
  const auto at = std::string(inst->loc.file) + ":" + std::to_string(inst->loc.line) + ": ";
  const auto values = [&](const std::vector<const Value*>& kept) {
    std::string all;
    for (const Value* v : kept)
      all += std::string(all.empty() ? "" : ", ") + std::string(info(v->inst->op).name) +
             " of line " + std::to_string(v->inst->loc.line);
    return all;
  };
  if (inst->is(Op::if_)) {
    std::string kept;
    for (const Region* r : inst->regions)
      if (!kept_in(r).empty()) kept += (kept.empty() ? "" : "; ") + values(kept_in(r));
    return kept.empty() ? "" : at + "a branch passes on: " + kept + "\n";
  }
  const LoopPlan& plan = of(inst);
  const std::string way =
      plan.way == LoopPlan::in_order ? "a loop of sums is gone back through in its own order; "
      : plan.way == LoopPlan::last_replacing
          ? "the last round of a loop that replaced what it carries is gone back through; "
          : "a loop is gone back through from its end; ";
  if (plan.way == LoopPlan::computed) return "";
  std::string kept = plan.types.empty() ? "nothing is kept" : "";
  if (!plan.types.empty()) {
    const auto carried = std::ranges::count(plan.carried, true);
    kept = std::to_string(plan.bytes()) + " bytes a round are kept in " +
           (plan.is_in_rows ? std::string("rows of a field")
                            : "arrays of " + std::to_string(plan.rounds) + " elements") +
           ": " + std::to_string(carried) + " of " + std::to_string(plan.carried.size()) +
           " carried values" + (plan.values.empty() ? "" : ", " + values(plan.values));
  }
  if (!plan.inverted.empty())
    kept += "; found from the next round: " + std::to_string(plan.inverted.size()) + " of " +
            std::to_string(plan.carried.size()) + " carried values";
  return at + way + kept + "\n";
}

}  // namespace quern::autodiff
