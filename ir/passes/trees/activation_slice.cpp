#include "ir/passes/trees/activation_slice.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "ir/passes/optimise/dead_code.h"

namespace quern::ir {

namespace {

/// Has an effect that the slice is to go without.
bool acts(const Inst* inst) {
  if (inst->is(Op::atomic)) return inst->atomic() != AtomicOp::load;
  return inst->is(Op::store) || inst->is(Op::check) || inst->is(Op::print) ||
         inst->is(Op::activate) || inst->is(Op::deactivate) ||
         (inst->is(Op::reduce) && inst->operand(0)->type != Type::slot);
}

/// Reads of elements that no other iteration touches, and the own one writes later if at all: what is
/// there before the task.
class OwnReads {
 public:
  OwnReads(const Kernel& kernel, const Task& task) : effects_(kernel) {
    walk(task.body, [&](Inst* inst) {
      if (inst->is(Op::parallel)) indices_ = inst->region(0)->args;
      if (accesses_element(inst->op)) accesses_.push_back(inst);
    });
    if (kernel.level < Level::opened) indices_ = task.body->args;
  }

  bool contains(const Inst* load) {
    if (!load || !load->is(Op::load) || indices_.empty() || !names_iteration(load)) return false;
    bool before = true;
    for (const Inst* inst : accesses_) {
      if (inst == load) before = false;
      if (!effects_.may_overlap(inst->binding(), load->binding())) continue;
      if (inst->binding() != load->binding() || repeats(inst) || !same_element(inst, load) ||
          (before && has(inst->op, flag::writes)))
        return false;
    }
    return true;
  }

 private:
  /// Is each index of the loop one of the access's?
  bool names_iteration(const Inst* access) const {
    return std::ranges::all_of(indices_, [&](const Value& index) {
      return std::ranges::any_of(access->operands.first(Effects::indices(access)),
                                 [&](const Use& use) { return use.value == &index; });
    });
  }
  static bool same_element(const Inst* a, const Inst* b) {
    return std::ranges::equal(a->operands.first(Effects::indices(a)),
                              b->operands.first(Effects::indices(b)), {}, &Use::value, &Use::value);
  }
  static bool repeats(const Inst* inst) {
    for (const Inst* at = inst->parent->parent; at; at = at->parent->parent)
      if (at->is(Op::loop) || at->is(Op::while_)) return true;
    return false;
  }

  Effects effects_;
  std::span<const Value> indices_;
  std::vector<const Inst*> accesses_;  ///< in program order
};

/// What keeps the body from running before the task: a read of what the task changes, and what cannot
/// be done without.
bool is_obstacle(const Inst* inst, Effects& effects, const Places& changed) {
  if (inst->is(Op::activate)) return false;
  if (acts(inst) || inst->is(Op::is_active) || inst->is(Op::empty_box) || inst->is(Op::call))
    return true;
  if (inst->is(Op::reduce) || !inst->regions.empty() || is_pure(inst->op)) return false;
  Places reads = effects.of(inst).reads;
  reads.slots.clear();
  return effects.may_overlap(changed, reads);
}

}  // namespace

std::optional<ActivationSlice> activation_slice(Kernel& kernel, const Task& task,
                                                const std::vector<Inst*>& claims) {
  // Which element becomes active by an `append`, those before it decide.
  const auto appends = [](const Inst* inst) { return inst->is(Op::append); };
  if (std::ranges::any_of(claims, appends)) return std::nullopt;
  Builder b(kernel);
  ValueMap map;
  ActivationSlice out;
  out.body = clone_region(b, task.body, map);
  std::vector<Inst*> originals, copies;
  std::unordered_map<const Inst*, const Inst*> original;
  std::unordered_set<const Inst*> unknowns;  // stand for what effects would have yielded
  walk(task.body, [&](Inst* inst) { originals.push_back(inst); });
  walk(out.body, [&](Inst* inst) { copies.push_back(inst); });
  for (size_t k = 0; k < originals.size(); k++) {
    Inst* copy = copies[k];
    original[copy] = originals[k];
    if (std::ranges::find(claims, originals[k]) != claims.end()) {
      std::vector<Value*> index;
      for (size_t axis = 0; axis < Effects::indices(copy); axis++)
        index.push_back(copy->operand(axis));
      Inst* activate = b.before(copy).at(copy->loc).make(Op::activate, {}, index);
      activate->part = {copy->binding(), 0};
      out.activations.push_back(activate);
    }
    if (!acts(copy)) continue;
    for (Value& old : copy->results) {
      Value* unknown = b.before(copy).constant(old.type, 0);
      old.replace_with(unknown);
      unknowns.insert(unknown->inst);
    }
    copy->erase();
  }
  dead_code(kernel, out.body);

  Effects of_task(kernel), of_slice(kernel);
  const Places changed = of_task.of(task.body).writes;
  OwnReads own(kernel, task);
  bool possible = true;
  walk(out.body, [&](Inst* inst) {
    const bool counts = inst->is(Op::call_number) && task.kind == Task::serial;  // for all tasks
    possible = possible && !counts && !unknowns.contains(inst) &&
               (own.contains(original[inst]) || !is_obstacle(inst, of_slice, changed));
  });
  if (!possible) return std::nullopt;
  if (kernel.level >= Level::opened && task.kind == Task::range) {
    bool asks = false;
    out.loops = false;
    walk(out.body, [&](Inst* inst) {
      out.loops |= inst->is(Op::parallel);
      asks |= inst->is(Op::builtin);
    });
    if (!out.loops && asks) return std::nullopt;
  }
  return out;
}

bool can_repeat(const Kernel& kernel, const Task& task) {
  if (task.kind != Task::range || !task.reductions.empty()) return false;
  std::set<uint32_t> read, written;
  bool repeats = true;
  walk(task.body, [&](const Inst* inst) {
    const bool is_atomic = inst->is(Op::atomic) && inst->atomic() != AtomicOp::load;
    if (is_atomic || inst->is(Op::check) || inst->is(Op::print) || inst->is(Op::call) ||
        inst->is(Op::reduce) || inst->is(Op::is_active) || inst->is(Op::empty_box) ||
        inst->is(Op::deactivate) || inst->is(Op::length) || inst->is(Op::append))
      repeats = false;
    if (inst->is(Op::store)) written.insert(inst->binding());
    if (inst->is(Op::load) || inst->is(Op::atomic)) read.insert(inst->binding());
  });
  const Effects effects(kernel);
  for (const uint32_t from : read)
    for (const uint32_t to : written) repeats &= !effects.may_overlap(from, to);
  return repeats;
}

uint64_t activations_per_iteration(const std::vector<Inst*>& claims, uint32_t chunks) {
  uint64_t total = 0;
  for (const Inst* inst : claims) {
    // An element of a list has those before it made, too; one that is appended has them already.
    uint64_t rounds = chunks == 0 || inst->is(Op::append) ? 1 : chunks;
    for (const Inst* at = inst->parent->parent; at; at = at->parent->parent) {
      if (at->is(Op::while_)) return 0;
      if (!at->is(Op::loop)) continue;
      const Inst *lo = constant_of(at->operand(0)), *hi = constant_of(at->operand(1)),
                 *step = constant_of(at->operand(2));
      if (!lo || !hi || !step) return 0;
      const int64_t first = to_signed(lo->imm, lo->type()), end = to_signed(hi->imm, hi->type());
      const int64_t by = to_signed(step->imm, step->type());
      const uint64_t times = end <= first ? 0 : uint64_t((end - first - 1) / by + 1);
      if (__builtin_mul_overflow(rounds, times, &rounds)) return 0;
    }
    if (__builtin_add_overflow(total, rounds, &total)) return 0;
  }
  return total;
}

}  // namespace quern::ir
