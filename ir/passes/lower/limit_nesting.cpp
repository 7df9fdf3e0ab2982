#include "ir/passes/lower/limit_nesting.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

bool is_loop(const Inst* inst) { return inst->is(Op::loop) || inst->is(Op::while_); }

bool holds_if(const Inst* inst) {
  for (const Region* r : inst->regions)
    for (const Inst* inner : *r)
      if (inner->is(Op::if_) || holds_if(inner)) return true;
  return false;
}

/// How many ifs and loops stand around an instruction.
struct Depth {
  uint32_t ifs = 0, loops = 0;
};

class Limiter {
 public:
  Limiter(Kernel& kernel, const TargetTraits& target)
      : b_(kernel), most_ifs_(target.if_nesting), most_loops_(target.loop_nesting) {}

  void limit(Region* region, Depth depth) {
    for (Inst* inst : *region) {
      if (is_loop(inst))
        limit_loop(inst, depth);
      else if (inst->is(Op::if_) && depth.ifs + 1 == most_ifs_ && holds_if(inst))
        flatten(inst, nullptr, {inst, depth});
      else if (inst->is(Op::if_))
        limit_branches(inst, depth);
    }
  }

 private:
  void limit_branches(Inst* inst, Depth depth) {
    for (Region* r : inst->regions) limit(r, {depth.ifs + 1, depth.loops});
  }

  void limit_loop(Inst* loop, Depth depth) {
    if (most_loops_ && depth.loops == most_loops_)
      throw Error(loop->loc, "more than " + std::to_string(most_loops_) +
                                 " loops inside each other: this device runs no more");
    for (Region* r : loop->regions) limit(r, {depth.ifs, depth.loops + 1});
  }

  // ---- an if that holds others: what is in it goes before `place.at`

  struct Place {
    Inst* at;
    Depth depth;
  };

  /// `reached` says whether the if runs at all; null: it does.
  void flatten(Inst* inst, Value* reached, Place place) {
    Value* condition = inst->operand(0);
    std::vector<Value*> yields[2];
    for (size_t k = 0; k < 2; k++) {
      Region* branch = inst->region(k);
      if (branch->first != branch->last) {
        b_.before(place.at).at(inst->loc);
        Value* mine = k == 0 ? condition : b_.unary(Op::bit_not, condition);
        lay_out(branch, reached ? b_.binary(Op::bit_and, reached, mine) : mine, place);
      }
      yields[k] = operands(branch->last);
    }
    b_.before(place.at).at(inst->loc);
    for (size_t k = 0; k < inst->results.size(); k++)
      if (inst->result(k)->used())
        inst->result(k)->replace_with(b_.select(condition, yields[0][k], yields[1][k]));
    inst->erase();
  }

  void lay_out(Region* branch, Value* reached, Place place) {
    std::vector<Inst*> part;
    for (Inst* inst : *branch) {
      const bool cuts = inst->is(Op::if_) || holds_if(inst);
      if (!cuts && inst != branch->last) {
        part.push_back(inst);
        continue;
      }
      lay_out_part(part, reached, place);
      part.clear();
      if (inst->is(Op::if_))
        flatten(inst, reached, place);
      else if (cuts)
        enter_where(reached, inst, place);
    }
  }

  /// What stands between inner ifs. What has no effect runs whether it is reached or not.
  void lay_out_part(std::vector<Inst*>& part, Value* reached, Place place) {
    b_.before(place.at);
    std::erase_if(part, [&](Inst* inst) {
      const bool lasts = inst->is(Op::constant) || inst->is(Op::slot);
      if (lasts) move(b_, inst);
      return lasts;
    });
    if (std::ranges::all_of(part, [](const Inst* inst) { return is_pure(inst->op); })) {
      for (Inst* inst : part) move(b_, inst);
      return;
    }
    b_.at(part[0]->loc);
    std::vector<Use*> behind = uses_behind(part);
    std::vector<Value*> values, zeros;
    for (const Use* use : behind) {
      if (!values.empty() && values.back() == use->value) continue;
      values.push_back(use->value);
      zeros.push_back(b_.constant(use->value->type, 0));
    }
    Inst* guard = run_where(reached, part, values, zeros);
    size_t k = 0;
    for (Use* use : behind) {
      if (use->value != values[k]) k++;
      use->user->set_operand(size_t(use - use->user->operands.data()), guard->result(k));
    }
    limit_branches(guard, place.depth);
  }

  /// Uses of the values of `part`, which lies in one region, that come behind it; those of one
  /// value follow each other.
  static std::vector<Use*> uses_behind(const std::vector<Inst*>& part) {
    const Region* region = part[0]->parent;
    std::unordered_set<const Inst*> inside(part.begin(), part.end());
    std::vector<Use*> behind;
    for (const Inst* inst : part) {
      for (const Value& v : inst->results) {
        for (Use* use = v.uses; use; use = use->next) {
          const Inst* top = use->user;
          while (top->parent != region) top = top->parent->parent;
          if (!inside.contains(top)) behind.push_back(use);
        }
      }
    }
    return behind;
  }

  /// A loop that holds ifs: no round of it runs where it is not reached.
  void enter_where(Value* reached, Inst* loop, Place place) {
    b_.before(place.at).at(loop->loc);
    move(b_, loop);
    if (loop->is(Op::loop)) {
      b_.before(loop);
      loop->set_operand(1, b_.select(reached, loop->operand(1), loop->operand(0)));
    } else {
      Region* condition = loop->region(0);
      Inst* end = condition->last;
      std::vector<Inst*> part;
      for (Inst* inst = condition->first; inst != end; inst = inst->next) part.push_back(inst);
      std::vector<Value*> others = {b_.before(end).boolean(false)};
      for (Value& v : condition->args) others.push_back(&v);
      Inst* guard = run_where(reached, part, operands(end), others);
      for (size_t k = 0; k < others.size(); k++) end->set_operand(k, guard->result(k));
    }
    limit_loop(loop, place.depth);
  }

  /// An if at the builder's point that runs `part` and yields `values`, or yields `others`.
  Inst* run_where(Value* reached, const std::vector<Inst*>& part, const std::vector<Value*>& values,
                  const std::vector<Value*>& others) {
    std::vector<Type> types;
    for (const Value* v : values) types.push_back(v->type);
    Inst* guard = b_.if_(reached, types);
    Builder inside(b_);
    inside.at_end(guard->region(0));
    for (Inst* inst : part) move(inside, inst);
    inside.yield(values);
    inside.at_end(guard->region(1)).yield(others);
    return guard;
  }

  static std::vector<Value*> operands(const Inst* inst) {
    std::vector<Value*> all;
    for (const Use& use : inst->operands) all.push_back(use.value);
    return all;
  }

  Builder b_;
  uint32_t most_ifs_, most_loops_;  ///< 0: any number
};

}  // namespace

void limit_nesting(Kernel& kernel, const TargetTraits& target) {
  if (target.if_nesting == 0 && target.loop_nesting == 0) return;
  for (Task& task : kernel.tasks) Limiter(kernel, target).limit(task.body, {});
}

}  // namespace quern::ir
