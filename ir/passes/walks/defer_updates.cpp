#include "ir/passes/walks/defer_updates.h"

#include <algorithm>
#include <unordered_set>

#include "ir/analysis/effects.h"
#include "ir/analysis/facts.h"
#include "ir/passes/walks/strips.h"

namespace quern::ir {

namespace {

/// What crosses in a strip stays in the first-level cache.
constexpr int64_t bytes_of_strip = 24576;
/// Below this many iterations a strip is not worth its loops.
constexpr int64_t least_strip = 64;
/// A value that crosses is written and read once: so many instructions of arithmetic pay for it.
constexpr size_t worth_of_crossing = 3;

class Deferrer : Strips {
 public:
  Deferrer(Kernel& kernel, Effects& effects, Inst* walk, int64_t strip)
      : Strips(kernel, walk, strip), effects_(effects) {}

  /// Changes the walk where it has the form and it pays; it is gone then.
  void run() {
    if (!is_constant(walk_->operand(2), 1)) return;
    cut();
    if (updates_.empty() || !is_simple() || !is_apart() || !pays()) return;
    b_.before(walk_).at(walk_->loc);
    for (const Inst* update : updates_) outer_operands(update, [&](Value* v) { keep(v); });
    std::vector<Value*> init;
    for (size_t k = 3; k < walk_->operand_count(); k++) init.push_back(walk_->operand(k));
    Inst* strips = begin_strips(init);
    std::vector<Value*> next = rest(strips->region(0)->args.subspan(1));
    each(0, {}, [&](std::span<Value>) {
      for (const Inst* update : updates_) copy(update);
      return std::vector<Value*>();
    });
    b_.yield(next);
    for (size_t k = 0; k < walk_->results.size(); k++)
      walk_->result(k)->replace_with(strips->result(k));
    walk_->erase();
  }

 private:
  void cut() {
    for (Inst* inst = body_->first; inst != body_->last; inst = inst->next)
      (is_update(inst) ? updates_ : rest_).push_back(inst);
  }

  static bool is_used(const Inst* inst) {
    return std::ranges::any_of(inst->results, [](const Value& v) { return v.used(); });
  }

  static bool is_update(const Inst* inst) {
    if (is_used(inst)) return false;
    if (inst->is(Op::rmw)) return true;
    if (!inst->is(Op::if_)) return false;
    bool updates = false, nothing_else = true;
    for (Region* region : inst->regions)
      walk(region, [&](const Inst* inner) {
        updates |= inner->is(Op::rmw) || inner->is(Op::put);
        nothing_else &= is_pure(inner->op) || inner->is(Op::rmw) || inner->is(Op::put) ||
                        inner->is(Op::get) || inner->is(Op::if_) || inner->is(Op::yield);
      });
    return updates && nothing_else;
  }

  /// Can a back end vectorise the rest?
  bool is_simple() const {
    bool simple = true;
    for (const Inst* inst : rest_) {
      simple &= vectorises(inst);
      for (Region* region : inst->regions)
        walk(region, [&](const Inst* inner) { simple &= vectorises(inner); });
    }
    return simple;
  }

  static bool vectorises(const Inst* inst) {
    return is_pure(inst->op) || inst->is(Op::read) || inst->is(Op::write) || inst->is(Op::get) ||
           inst->is(Op::put) || inst->is(Op::yield) || (inst->is(Op::if_) && !is_rare(inst));
  }

  /// Does the rest see nothing of the updates? Behind one, in the same iteration, it must not touch
  /// the same memory; of slots, which iterations share, it must not at all. Nor may an update need
  /// what the walk carries.
  bool is_apart() {
    std::unordered_set<const Value*> carried;
    for (size_t k = 1; k < body_->args.size(); k++) carried.insert(body_->arg(k));
    std::vector<const Inst*> before;
    for (Inst* inst = body_->first; inst != body_->last; inst = inst->next) {
      bool needs_carried = false;
      outer_operands(inst, [&](Value* v) { needs_carried |= carried.contains(v); });
      if (is_update(inst)) {
        if (needs_carried) return false;
        before.push_back(inst);
        continue;
      }
      if (needs_carried)
        for (const Value& v : inst->results) carried.insert(&v);
      if (is_pure(inst->op)) continue;
      for (const Inst* update : before)
        if (effects_.may_conflict(update, inst)) return false;
    }
    return shares_no_slots();
  }

  bool shares_no_slots() {
    std::unordered_set<const Value*> slots;
    auto add = [](std::unordered_set<const Value*>& to, const Touched& touched) {
      to.insert(touched.reads.slots.begin(), touched.reads.slots.end());
      to.insert(touched.writes.slots.begin(), touched.writes.slots.end());
    };
    for (const Inst* update : updates_) add(slots, effects_.of(update));
    std::unordered_set<const Value*> others;
    for (const Inst* inst : rest_)
      if (!is_pure(inst->op)) add(others, effects_.of(inst));
    return std::ranges::none_of(others, [&](const Value* v) { return slots.contains(v); });
  }

  /// Is there enough to vectorise for what crosses? Shortens the strips to what the cache holds.
  bool pays() {
    std::unordered_set<const Value*> crossing;
    int64_t bytes = 0;
    for (const Inst* update : updates_)
      outer_operands(update, [&](Value* v) {
        crosses(v, [&](Value* kept) {
          if (crossing.insert(kept).second) bytes += int64_t(byte_size(kept->type));
        });
      });
    if (crossing.empty()) return false;
    while (strip_ > least_strip && strip_ * bytes > bytes_of_strip) strip_ /= 2;
    return strip_ * bytes <= bytes_of_strip && arithmetic() >= worth_of_crossing * crossing.size();
  }

  /// How many instructions of arithmetic on what comes from memory the rest has.
  size_t arithmetic() {
    size_t count = 0;
    auto look = [&](const Inst* inst) {
      count += is_pure(inst->op) && inst->results.size() == 1 && is_number(inst->result()->type) &&
               from_memory(inst->result());
    };
    for (const Inst* inst : rest_) {
      look(inst);
      for (Region* region : inst->regions) walk(region, look);
    }
    return count;
  }

  /// Everything but the updates; carries what the walk carries.
  std::vector<Value*> rest(std::span<Value> init) {
    std::vector<Value*> from;
    for (Value& v : init) from.push_back(&v);
    return each(parallel_walk, from, [&](std::span<Value> carried) {
      for (size_t k = 0; k < carried.size(); k++) map_[body_->arg(k + 1)] = &carried[k];
      for (const Inst* inst : rest_) copy(inst);
      for (Value* v : kept_) b_.put(slots_.at(v), within_, map_.at(v));
      std::vector<Value*> next;
      for (const Use& use : body_->last->operands) next.push_back(need(use.value));
      return next;
    });
  }

  Effects& effects_;
  std::vector<const Inst*> updates_, rest_;
};

}  // namespace

void defer_updates(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  Effects effects(kernel);
  for (Inst* walk : walks_of(kernel)) Deferrer(kernel, effects, walk, target.strip).run();
}

}  // namespace quern::ir
