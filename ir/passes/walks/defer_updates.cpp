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
/// Iterations whose additions are summed first where all are to one place, as neighbours often are:
/// each would wait for the one before. To ask takes as long as an addition or two.
constexpr int64_t summed = 8;
constexpr size_t worth_of_asking = 3, most_asked = 8;
/// Each is there four times then.
constexpr size_t most_additions = 128;
/// A value that crosses is written and read once: so many instructions of arithmetic pay for it.
constexpr size_t worth_of_crossing = 3;

class Deferrer : Strips {
 public:
  Deferrer(Kernel& kernel, Effects& effects, Inst* walk, int64_t strip)
      : Strips(kernel, walk, strip), effects_(effects), is_strict_(kernel.modes.strict) {}

  /// Changes the walk where it has the form and it pays; it is gone then.
  void run() {
    if (!is_constant(walk_->operand(2), 1)) return;
    cut();
    if (updates_.empty() || !is_simple() || !is_apart() || !pays()) return;
    b_.before(walk_).at(walk_->loc);
    for (const Inst* update : updates_) outer_operands(update, [&](Value* v) { keep(v); });
    std::vector<Value*> init;
    for (size_t k = 3; k < walk_->operand_count(); k++) init.push_back(walk_->operand(k));
    group_additions();
    Inst* strips = begin_strips(init);
    std::vector<Value*> next = rest(strips->region(0)->args.subspan(1));
    paths_.empty() ? update_from(integer(0)) : update_by_groups();
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

  // ---- the updates

  /// All of them, for each iteration of the strip from `first` on.
  void update_from(Value* first) {
    loop_over(first, count_, [&](Value* k) {
      stand_at(k);
      for (const Inst* update : updates_) copy(update);
    });
  }

  void loop_over(Value* begin, Value* end, const std::function<void(Value*)>& fill) {
    Inst* loop = b_.loop(begin, end, integer(1));
    Region* around = b_.region();
    b_.at_end(loop->region(0));
    fill(loop->region(0)->arg(0));
    b_.yield();
    b_.at_end(around);
  }

  void stand_at(Value* within) {
    within_ = within;
    map_.clear();
    map_[body_->arg(0)] = b_.add(base_, within_);
  }

  /// Branches on what all iterations share, and which of its regions one is in.
  using Path = std::vector<std::pair<Value*, size_t>>;
  /// Additions whose addresses are made of the same values that cross, and of no index; their terms
  /// cross, too. Where these values are the same in several iterations, terms may be summed before.
  struct Group {
    std::vector<Value*> places;
    std::vector<const Inst*> additions;
  };
  struct OnPath {
    Path path;
    std::vector<Group> groups = {};
    std::vector<const Inst*> others = {};
  };

  /// None on any path where updates are no additions, whose order would matter, too many, or of no
  /// group that is worth to be asked.
  void group_additions() {
    bool are_additions = true;
    for (const Inst* update : updates_) are_additions = are_additions && add(update, {});
    size_t asked = 0;
    for (OnPath& on : paths_)
      std::erase_if(on.groups, [&](const Group& group) {
        if (group.additions.size() >= worth_of_asking && asked++ < most_asked) return false;
        on.others.insert(on.others.end(), group.additions.begin(), group.additions.end());
        return true;
      });
    if (!are_additions || asked == 0) paths_.clear();
  }

  bool add(const Inst* inst, const Path& path) {
    if (inst->is(Op::rmw)) return add_addition(inst, path);
    if (!inst->is(Op::if_)) return is_pure(inst->op) || inst->is(Op::yield);
    if (!is_shared(inst->operand(0))) return false;
    for (size_t side = 0; side < 2; side++) {
      Path further = path;
      further.push_back({inst->operand(0), side});
      for (const Inst* inner : *inst->region(side))
        if (!add(inner, further)) return false;
    }
    return true;
  }

  bool add_addition(const Inst* rmw, const Path& path) {
    if (rmw->atomic() != AtomicOp::add || is_used(rmw) || additions_++ == most_additions)
      return false;
    auto on = std::ranges::find(paths_, path, &OnPath::path);
    if (on == paths_.end()) on = paths_.insert(on, OnPath{path});
    const Value* term = rmw->operand(1);
    std::vector<Value*> places;
    std::unordered_set<const Value*> seen;
    const bool may_sum = slots_.contains(term) && !(is_strict_ && is_float(rmw->elem)) &&
                         find_places(rmw->operand(0), places, seen) && !places.empty() &&
                         std::ranges::find(places, term) == places.end();
    if (!may_sum) {
      on->others.push_back(rmw);
      return true;
    }
    auto group = std::ranges::find_if(
        on->groups, [&](const Group& g) { return std::ranges::is_permutation(g.places, places); });
    if (group == on->groups.end()) group = on->groups.insert(group, Group{places, {}});
    group->additions.push_back(rmw);
    return true;
  }

  /// What crosses of all that the value is made of, as need() finds it. False where it follows from
  /// the index besides.
  bool find_places(Value* v, std::vector<Value*>& places, std::unordered_set<const Value*>& seen) {
    if (is_shared(v) || !seen.insert(v).second) return true;
    if (slots_.contains(v)) {
      places.push_back(v);
      return true;
    }
    if (!v->inst || !is_pure(v->inst->op) || !v->inst->regions.empty()) return false;
    return std::ranges::all_of(
        v->inst->operands, [&](const Use& use) { return find_places(use.value, places, seen); });
  }

  /// So many iterations at a time.
  void update_by_groups() {
    Value* whole = b_.sub(count_, b_.binary(Op::rem, count_, integer(summed)));
    Inst* blocks = b_.loop(integer(0), whole, integer(summed));
    Region* around = b_.region();
    b_.at_end(blocks->region(0));
    Value* first = blocks->region(0)->arg(0);
    for (const OnPath& on : paths_) at_end_of(on.path, [&] { update_block(on, first); });
    b_.yield();
    b_.at_end(around);
    update_from(whole);
  }

  void at_end_of(std::span<const std::pair<Value*, size_t>> path,
                 const std::function<void()>& fill) {
    if (path.empty()) return fill();
    const auto here = [&] { at_end_of(path.subspan(1), fill); };
    const auto nothing = [] {};
    path[0].second == 0 ? choose(path[0].first, here, nothing)
                        : choose(path[0].first, nothing, here);
  }

  /// Where any group is at one place, each on its own.
  void update_block(const OnPath& on, Value* first) {
    std::vector<const Inst*> all = on.others;
    Value* any = nullptr;
    std::vector<Value*> are_one;
    for (const Group& group : on.groups) {
      are_one.push_back(is_one_place(group, first));
      any = any ? b_.binary(Op::bit_or, any, are_one.back()) : are_one.back();
      all.insert(all.end(), group.additions.begin(), group.additions.end());
    }
    if (!any) return add_each(all, first);
    const auto apart = [&] {
      if (!on.others.empty()) add_each(on.others, first);
      for (size_t k = 0; k < on.groups.size(); k++)
        choose(
            are_one[k], [&] { add_sums(on.groups[k], first); },
            [&] { add_each(on.groups[k].additions, first); });
    };
    choose(any, apart, [&] { add_each(all, first); });
  }

  /// Bounds that are constants would have the loop written out, which takes longer.
  void add_each(std::span<const Inst* const> additions, Value* first) {
    loop_over(first, b_.add(first, integer(summed)), [&](Value* k) {
      stand_at(k);
      for (const Inst* addition : additions) copy(addition);
    });
  }

  void add_sums(const Group& group, Value* first) {
    stand_at(first);
    for (const Inst* addition : group.additions) {
      const Value* term = addition->operand(1);
      if (!map_.contains(term)) map_[term] = sum_of(slots_.at(term), first);
    }
    for (const Inst* addition : group.additions) copy(addition);
  }

  /// An `if`, whose regions these make. The builder stands behind it afterwards.
  void choose(Value* condition, const std::function<void()>& yes, const std::function<void()>& no) {
    Inst* branch = b_.if_(condition);
    Region* around = b_.region();
    b_.at_end(branch->region(0));
    yes();
    b_.yield();
    b_.at_end(branch->region(1));
    no();
    b_.yield();
    b_.at_end(around);
  }

  Value* at(Value* array, Value* first, int64_t k) {
    return b_.get(array, k == 0 ? first : b_.add(first, integer(k)));
  }

  /// Are all iterations at one place? The first and the last one are asked before the others.
  Value* is_one_place(const Group& group, Value* first) {
    Value* ends = nullptr;
    for (Value* place : group.places) {
      Value* array = slots_.at(place);
      Value* same = b_.binary(Op::eq, at(array, first, 0), at(array, first, summed - 1));
      ends = ends ? b_.binary(Op::bit_and, ends, same) : same;
    }
    const Type type = Type::b1;
    Inst* branch = b_.if_(ends, {&type, 1});
    Region* around = b_.region();
    b_.at_end(branch->region(0));
    Value* all = nullptr;
    for (Value* place : group.places) {
      Value* array = slots_.at(place);
      Value* one = at(array, first, 0);
      Value* differ = nullptr;
      for (int64_t k = 1; k + 1 < summed; k++) {
        Value* d = b_.binary(Op::bit_xor, at(array, first, k), one);
        differ = differ ? b_.binary(Op::bit_or, differ, d) : d;
      }
      Value* same = b_.binary(Op::eq, differ, b_.constant(differ->type, 0));
      all = all ? b_.binary(Op::bit_and, all, same) : same;
    }
    b_.yield({&all, 1});
    b_.at_end(branch->region(1));
    Value* no = b_.constant(Type::b1, 0);
    b_.yield({&no, 1});
    b_.at_end(around);
    return branch->result();
  }

  Value* sum_of(Value* array, Value* first) {
    Value* sum = at(array, first, 0);
    for (int64_t k = 1; k < summed; k++) {
      sum = b_.add(sum, at(array, first, k));
      if (is_float(sum->type)) sum->inst->kind |= reassociate;
    }
    return sum;
  }

  Effects& effects_;
  std::vector<const Inst*> updates_, rest_;
  const bool is_strict_;
  std::vector<OnPath> paths_;
  size_t additions_ = 0;  ///< of all paths
};

}  // namespace

void defer_updates(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  Effects effects(kernel);
  for (Inst* walk : walks_of(kernel)) Deferrer(kernel, effects, walk, target.strip).run();
}

}  // namespace quern::ir
