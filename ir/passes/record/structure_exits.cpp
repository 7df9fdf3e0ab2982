#include "ir/passes/record/structure_exits.h"

#include <unordered_map>
#include <unordered_set>

#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

bool is_loop(const Inst* inst) {
  return inst->is(Op::loop) || inst->is(Op::while_) || inst->is(Op::parallel);
}
bool is_exit(const Inst* inst) { return has(inst->op, flag::ends) && !inst->is(Op::yield); }

/// A loop around the point being looked at, or the root.
struct Scope {
  Value* broken = nullptr;  ///< slot: the loop ends (for the root: has returned)
  Value* ended = nullptr;   ///< slot: this iteration ends
  /// The slot that says whether the rest of the iteration is skipped.
  Value* guard() const { return ended ? ended : broken; }
};

struct Targets {
  bool breaks = false, continues = false;
};

class Structurer {
 public:
  Structurer(Kernel& kernel, Region* root, std::span<const Type> results)
      : b_(kernel), root_(root), results_(results) {}

  void run() {
    std::vector<Inst*> loops;
    if (root_->last->is(Op::yield) && root_->last->operand_count()) root_->last->op = Op::return_;
    bool returns_last = root_->last->is(Op::return_);
    collect(root_, loops);
    // Without an early return the values need no slots.
    bool early = returns_ > 1 || (returns_last ? false : returns_ == 1 || !results_.empty());
    if (early)
      prepare_root();
    else
      root_->last->op = Op::yield;
    process(root_->last);
    if (early) finish_root();
    for (Value* flag : flags_) drop_if_unread(flag);
  }

 private:
  // ---- which loops are the target of what; which instructions let an exit through

  Inst* target(const std::vector<Inst*>& loops, size_t level) {
    if (level >= loops.size()) throw InternalError("an exit leaves more loops than there are");
    return loops[loops.size() - 1 - level];
  }

  void leave(Inst* loop) {
    if (loop->is(Op::parallel)) throw InternalError("an exit leaves a parallel loop");
    if (!loop->results.empty()) throw InternalError("an exit leaves a loop that carries values");
    targets_[loop].breaks = true;
  }

  void collect_exit(Inst* exit, const std::vector<Inst*>& loops) {
    Inst* stop = nullptr;
    if (exit->is(Op::break_)) {
      for (size_t k = 0; k < exit->imm; k++) leave(stop = target(loops, k));
    } else if (exit->is(Op::continue_)) {
      for (size_t k = 0; k < exit->imm; k++) leave(target(loops, k));
      stop = target(loops, exit->imm);
      if (!stop->results.empty()) throw InternalError("an exit ends a loop that carries values");
      targets_[stop].continues = true;
    } else {
      for (Inst* loop : loops) leave(loop);
      returns_++;
    }
    for (Inst* at = exit->parent->parent; at != stop; at = at->parent->parent) {
      if (at->is(Op::if_) && !at->results.empty())
        throw InternalError("an if with results holds an exit");
      leaky_.insert(at);
    }
  }

  void collect(Region* region, std::vector<Inst*>& loops) {
    bool always = is_exit(region->last);
    for (Inst* inst = region->first; inst; inst = inst->next) {
      if (is_loop(inst)) loops.push_back(inst);
      for (Region* r : inst->regions) collect(r, loops);
      if (is_loop(inst)) loops.pop_back();
      if (is_exit(inst)) collect_exit(inst, loops);
      if (inst->is(Op::if_) && always_.contains(inst->region(0)) &&
          always_.contains(inst->region(1)))
        always = true;
    }
    if (always) always_.insert(region);
  }

  // ---- rewriting, last instruction first

  Value* flag_slot() {
    Value* slot = b_.slot(Type::b1);
    b_.put(slot, b_.boolean(false));
    flags_.push_back(slot);
    return slot;
  }

  void prepare_root() {
    b_.at_end(root_);
    if (root_->first) b_.before(root_->first);
    Scope scope;
    for (Type type : results_) result_slots_.push_back(b_.slot(type));
    scope.broken = flag_slot();
    scopes_ = {scope};
  }

  void finish_root() {
    root_->last->erase();
    b_.at_end(root_);
    std::vector<Value*> values;
    for (Value* slot : result_slots_) values.push_back(b_.get(slot));
    b_.yield(values);
  }

  void set(Value* slot) {
    if (slot) b_.put(slot, b_.boolean(true));
  }

  void replace_exit(Inst* exit) {
    b_.before(exit).at(exit->loc);
    size_t left = exit->is(Op::return_) ? scopes_.size() : size_t(exit->imm);
    for (size_t k = 0; k < left; k++) {
      Scope& scope = scopes_[scopes_.size() - 1 - k];
      set(scope.broken);
      set(scope.ended);
    }
    if (exit->is(Op::continue_)) set(scopes_[scopes_.size() - 1 - left].ended);
    if (exit->is(Op::return_)) {
      if (exit->operand_count() != result_slots_.size())
        throw InternalError("a return has the wrong number of values");
      for (size_t k = 0; k < result_slots_.size(); k++) b_.put(result_slots_[k], exit->operand(k));
    }
    b_.yield();
    exit->erase();
  }

  /// Moves what stands between `inst` and its region's terminator to the end of `to`.
  static void move_rest(Builder b, Inst* inst, Region* to) {
    Inst* end = inst->parent->last;
    b.before(to->last);
    while (inst->next != end) move(b, inst->next);
  }

  /// Puts what follows `inst` under a test that nothing has exited.
  void guard_rest(Inst* inst) {
    if (inst->next == inst->parent->last) return;
    b_.after(inst).at(inst->loc);
    Value* gone = b_.get(scopes_.back().guard());
    Inst* guard = b_.if_(gone);
    for (Region* r : guard->regions) Builder(b_).at_end(r).yield();
    move_rest(b_, guard, guard->region(1));
  }

  void process_if(Inst* inst) {
    bool leaky = leaky_.contains(inst);
    Region* branch[2] = {inst->region(0), inst->region(1)};
    bool always[2] = {always_.contains(branch[0]), always_.contains(branch[1])};
    Inst* last[2] = {branch[0]->last, branch[1]->last};
    if (leaky && always[0] && always[1]) {
      while (inst->next != inst->parent->last) inst->parent->last->prev->erase();
    } else if (leaky && (always[0] || always[1])) {
      // The other branch goes on with the rest; it is processed from where its own part ends.
      int other = always[0] ? 1 : 0;
      Inst* own = last[other]->prev;
      move_rest(b_, inst, branch[other]);
      process(last[1 - other]);
      if (own) process(own);
      return;
    }
    process(last[0]);
    process(last[1]);
    if (leaky) guard_rest(inst);
  }

  void process_loop(Inst* inst) {
    auto found = targets_.find(inst);
    Targets targets = found == targets_.end() ? Targets{} : found->second;
    Region* body = inst->regions.back();
    Scope scope;
    Inst* last = body->last;
    // The while made of a counted loop carries "another round": its flag lasts one round.
    if (targets.breaks) {
      b_.before(inst->is(Op::while_) ? inst : body->first).at(inst->loc);
      scope.broken = flag_slot();
    }
    if (targets.continues) {
      b_.before(body->first).at(inst->loc);
      scope.ended = flag_slot();
    }
    if (inst->is(Op::while_)) {
      if (leaves_region(inst->region(0), 0)) throw InternalError("an exit in a while condition");
      process(inst->region(0)->last);
    }
    scopes_.push_back(scope);
    process(last);
    scopes_.pop_back();
    if (leaky_.contains(inst)) guard_rest(inst);
    if (!targets.breaks) return;
    if (inst->is(Op::while_))
      test_in_condition(inst, scope.broken);
    else
      make_while(inst, scope.broken);
  }

  /// Does an exit in `region` end more than what stands in it? `loops` are around the exit.
  static bool leaves_region(Region* region, size_t loops) {
    for (Inst* inst : *region) {
      if (inst->is(Op::return_) || (inst->is(Op::break_) && inst->imm > loops) ||
          (inst->is(Op::continue_) && inst->imm >= loops))
        return true;
      for (Region* r : inst->regions)
        if (leaves_region(r, loops + (is_loop(inst) ? 1 : 0))) return true;
    }
    return false;
  }

  /// while {cond} becomes while {if broken {false} {cond}}.
  void test_in_condition(Inst* loop, Value* broken) {
    Region* condition = loop->region(0);
    Value* value = condition->last->operand(0);
    b_.before(condition->first).at(loop->loc);
    Value* gone = b_.get(broken);
    const Type type = Type::b1;
    Inst* choice = b_.if_(gone, {&type, 1});
    Builder yes(b_), no(b_);
    yes.at_end(choice->region(0)).yield({yes.boolean(false)});
    Inst* end = no.at_end(choice->region(1)).yield({value});
    no.before(end);
    while (choice->next != condition->last) move(no, choice->next);
    condition->last->set_operand(0, choice->result());
  }

  static bool is_one(const Value* v) {
    return v->inst && v->inst->is(Op::constant) && v->inst->imm == 1;
  }

  /// The index and "another round" are carried: loop semantics, ended early where broken.
  void make_while(Inst* loop, Value* broken) {
    Value *lo = loop->operand(0), *hi = loop->operand(1), *step = loop->operand(2);
    b_.before(loop).at(loop->loc);
    Value* init[2] = {lo, b_.lt(lo, hi)};
    Inst* round = b_.while_(init);
    round->site = loop->site;
    Region* condition = round->region(0);
    Builder(b_).at_end(condition).yield({condition->arg(1), condition->arg(0), condition->arg(1)});
    Region* body = round->region(1);
    Value* index = body->arg(0);
    loop->region(0)->arg(0)->replace_with(index);
    Builder b(b_);
    b.at_end(body);
    splice(b, loop->region(0));
    Value* next = b.add(index, step);
    Value* unbroken = b.unary(Op::bit_not, b.get(broken));
    Value* more = b.binary(Op::bit_and, b.lt(next, hi), unbroken);
    // With step 1 the sum cannot wrap: index < hi. Else a wrapped sum is not above the index.
    if (!is_one(step)) more = b.binary(Op::bit_and, more, b.lt(index, next));
    b.yield({next, more});
    loop->erase();
  }

  /// Processes the instructions of a region from `last` back to the first.
  void process(Inst* last) {
    if (is_exit(last)) {
      Inst* exit = last;
      last = exit->prev;
      replace_exit(exit);
    }
    Inst* before = nullptr;
    for (Inst* inst = last; inst; inst = before) {
      before = inst->prev;
      if (inst->is(Op::if_)) process_if(inst);
      if (is_loop(inst)) process_loop(inst);
    }
  }

  void drop_if_unread(Value* slot) {
    for (Use* use = slot->uses; use; use = use->next)
      if (use->user->is(Op::get)) return;
    while (slot->uses) {
      Inst* put = slot->uses->user;
      Inst* value = put->operand(1)->inst;
      put->erase();
      if (value->is(Op::constant) && !value->used()) value->erase();
    }
    slot->inst->erase();
  }

  Builder b_;
  Region* root_;
  std::span<const Type> results_;
  std::vector<Value*> result_slots_, flags_;
  std::vector<Scope> scopes_;
  std::unordered_map<Inst*, Targets> targets_;
  std::unordered_set<Inst*> leaky_;
  std::unordered_set<Region*> always_;
  size_t returns_ = 0;
};

}  // namespace

void structure_exits(Kernel& kernel) {
  if (kernel.body) Structurer(kernel, kernel.body, kernel.results).run();
  for (Function& f : kernel.callees)
    if (f.body) Structurer(kernel, f.body, f.results).run();
  kernel.level = Level::structured;
}

}  // namespace quern::ir
