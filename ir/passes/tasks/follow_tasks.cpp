#include "ir/passes/tasks/follow_tasks.h"

#include <algorithm>
#include <set>

#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "ir/analysis/ranges.h"
#include "ir/passes/lower/lower_loops.h"
#include "ir/passes/tasks/open_tasks.h"

namespace quern::ir {

namespace {

constexpr size_t most_accesses = 64;       ///< of a task
constexpr size_t most_instructions = 400;  ///< of the task that follows, which is there twice
constexpr int64_t farthest = 16;           ///< iterations along an axis

/// Are two values of domains, which the host evaluates, made of the same fields and parameters alike?
bool are_alike(const Value* a, const Value* b, int depth = 0) {
  const Inst *x = a->inst, *y = b->inst;
  if (!x || !y || depth > 16 || x->op != y->op || a->type != b->type || x->kind != y->kind)
    return false;
  if (!is_pure(x->op) || !x->regions.empty() || x->operand_count() != y->operand_count())
    return false;
  const bool names_binding = x->is(Op::extent) || x->is(Op::first) || x->is(Op::param);
  if (names_binding ? !(x->part == y->part) : x->imm != y->imm) return false;
  for (size_t k = 0; k < x->operand_count(); k++)
    if (!are_alike(x->operand(k), y->operand(k), depth + 1)) return false;
  return true;
}

/// One of the two tasks.
class Member {
 public:
  Member(const Kernel& kernel, const Task& task)
      : kernel_(kernel), task_(task), loop_(parallel_of(task)), ranges_(task.body, &kernel) {
    walk(loop_->region(0), [&](Inst* inst) {
      instructions_++;
      stores_only_ &=
          !has(inst->op, flag::writes) || inst->is(Op::store) || has(inst->op, flag::slots);
      look(inst);
    });
  }

  const std::vector<const Inst*>& accesses() const { return accesses_; }
  bool is_known() const { return is_known_ && accesses_.size() <= most_accesses; }
  bool may_follow() const {
    return stores_only_ && instructions_ <= most_instructions && loads_cells_only();
  }

  /// How far from its iteration's own index along the axis the access is; none: not known.
  std::optional<Interval> away(const Inst* access, uint32_t axis) {
    const Value* own = loop_->region(0)->arg(axis);
    const Value* index = access->operand(axis);
    std::set<int64_t> offsets;
    collect(index, own, offsets, 0);
    std::optional<int64_t> least, most;
    const auto distance = sum(ranges_.exact(index), ranges_.exact(own), -1);
    if (!distance) return std::nullopt;
    const auto holds = [&](int64_t factor, int64_t constant) {
      const auto form = sum(Affine{{}, constant}, *distance, factor);
      return form && ranges_.not_negative(*form, access->parent);
    };
    for (int64_t offset : offsets)
      if (!most && holds(-1, offset)) most = offset;
    for (auto at = offsets.rbegin(); at != offsets.rend(); ++at)
      if (!least && holds(1, -*at)) least = *at;
    if (!least || !most) return std::nullopt;
    return Interval{*least, *most};
  }

  /// Cells of the frame that the task reads.
  std::set<uint32_t> cells() const {
    std::set<uint32_t> cells;
    walk(task_.body, [&](const Inst* inst) {
      if (accesses_element(inst->op) && inst->binding() == kernel_.frame_binding())
        cells.insert(inst->component());
    });
    return cells;
  }

 private:
  void look(const Inst* inst) {
    const uint16_t read_or_written = flag::reads | flag::writes;
    const bool is_slot = has(inst->op, flag::slots);
    if (can_fail(kernel_, inst) || inst->is(Op::call)) is_known_ = false;
    if (!has(inst->op, read_or_written) || is_slot || inst->is(Op::reduce)) return;
    const bool is_access = inst->is(Op::load) || inst->is(Op::store) || inst->is(Op::atomic);
    if (inst->is(Op::load) && inst->binding() == kernel_.frame_binding()) return;
    const bool is_field = is_access && kernel_.bindings[inst->binding()].kind == Binding::field;
    if (!is_field || kernel_.bindings[inst->binding()].layout.is_sparse())
      is_known_ = false;
    else
      accesses_.push_back(inst);
  }

  /// Stands nothing before or behind the loop but what its bounds are and what frame cells hold?
  bool loads_cells_only() const {
    for (const Inst* inst : *task_.body)
      if (inst != loop_ && !has(inst->op, flag::ends) && !is_pure(inst->op) &&
          !(inst->is(Op::load) && inst->binding() == kernel_.frame_binding()))
        return false;
    return true;
  }

  /// Constants between the index and `own`, in what minima, maxima and choices take one of.
  void collect(const Value* v, const Value* own, std::set<int64_t>& offsets, int depth) {
    const Affine& form = forms_.of(v);
    if (form.base() == own && std::abs(form.constant) <= farthest) offsets.insert(form.constant);
    if (const Value* base = form.base(); base && base->inst && depth < 6 && base != own)
      for (const Use& use : base->inst->operands)
        if (base->inst->is(Op::min) || base->inst->is(Op::max) || base->inst->is(Op::select))
          collect(use.value, own, offsets, depth + 1);
    if (depth == 0) offsets.insert(0);
  }

  const Kernel& kernel_;
  const Task& task_;
  const Inst* const loop_;
  Ranges ranges_;
  AffineForms forms_;
  std::vector<const Inst*> accesses_;  ///< of elements of fields
  size_t instructions_ = 0;
  bool is_known_ = true, stores_only_ = true;
};

class Pair {
 public:
  Pair(const Kernel& kernel, const Task& first, const Task& second)
      : kernel_(kernel),
        task_(first),
        first_(kernel, first),
        second_(kernel, second),
        effects_(kernel) {}

  /// None where the second may not follow the first, or has nothing of it.
  std::optional<std::vector<Following::Reach>> reach() {
    if (!first_.is_known() || !second_.is_known() || !second_.may_follow()) return std::nullopt;
    for (const Reduction& r : task_.reductions)
      if (second_.cells().contains(r.cell)) return std::nullopt;
    std::vector<Following::Reach> reach(task_.rank - 1u);
    bool shares = false;
    for (const Inst* a : first_.accesses())
      for (const Inst* b : second_.accesses()) {
        if (!effects_.may_overlap(a->binding(), b->binding())) continue;
        shares = true;
        if (a->is(Op::load) && b->is(Op::load)) continue;
        if (a->binding() == b->binding() && a->component() != b->component()) continue;
        if (!add(a, b, reach)) return std::nullopt;
      }
    if (!shares) return std::nullopt;
    return reach;
  }

 private:
  bool add(const Inst* a, const Inst* b, std::vector<Following::Reach>& reach) {
    // A chunk may keep its updates in copies, which are merged behind the task (privatise_atomics).
    if (a->is(Op::atomic)) return false;
    if (a->binding() != b->binding() || kernel_.bindings[a->binding()].rank != task_.rank)
      return false;
    for (uint32_t axis = 0; axis < reach.size(); axis++) {
      const auto x = first_.away(a, axis), y = second_.away(b, axis);
      if (!x || !y) return false;
      Following::Reach& r = reach[axis];
      r.before = std::max(r.before, uint32_t(std::max<int64_t>(0, x->most - y->least)));
      r.after = std::max(r.after, uint32_t(std::max<int64_t>(0, y->most - x->least)));
    }
    return true;
  }

  const Kernel& kernel_;
  const Task& task_;
  Member first_, second_;
  Effects effects_;
};

class Follower {
 public:
  explicit Follower(Kernel& kernel) : kernel_(kernel) {}

  void run(std::vector<Step>& steps) {
    for (Step& step : steps) {
      run(step.condition);
      run(step.body);
    }
    for (size_t k = 1; k < steps.size(); k++) {
      const Step &before = steps[k - 1], &step = steps[k];
      if (before.kind != Step::launch || step.kind != Step::launch || before.task >= step.task)
        continue;
      const Task& first = kernel_.tasks[before.task];
      Task& second = kernel_.tasks[step.task];
      if (!is_walked(first) || !is_walked(second) || !has_one_domain(first, second)) continue;
      if (first.follows.task != no_task) continue;
      if (auto reach = Pair(kernel_, first, second).reach())
        second.follows = {before.task, std::move(*reach)};
    }
  }

 private:
  bool is_walked(const Task& task) const {
    const bool is_ordered =
        !task.reductions.empty() && (task.options.deterministic || kernel_.modes.strict);
    return task.kind == Task::range && task.walk == Task::chunked && task.domain && !is_ordered &&
           (task.rank == 2 || task.rank == 3) && task.options.block == 0 &&
           innermost_axis(kernel_, task) + 1u == task.rank;
  }
  static bool has_one_domain(const Task& a, const Task& b) {
    const Inst *x = a.domain->last, *y = b.domain->last;
    if (x->operand_count() != y->operand_count()) return false;
    for (size_t k = 0; k < x->operand_count(); k++)
      if (!are_alike(x->operand(k), y->operand(k))) return false;
    return true;
  }

  Kernel& kernel_;
};

}  // namespace

void follow_tasks(Kernel& kernel) {
  if (!kernel.modes.checked) Follower(kernel).run(kernel.schedule);
}

}  // namespace quern::ir
