#include "ir/passes/walks/defer_rare_branches.h"

#include "ir/analysis/facts.h"
#include "ir/passes/walks/strips.h"

namespace quern::ir {

namespace {

class Deferrer : Strips {
 public:
  Deferrer(Kernel& kernel, Inst* walk, int64_t strip) : Strips(kernel, walk, strip) {}

  /// Changes the walk where it has the form; it is gone then.
  void run() {
    cut();
    if (parts_.size() == 1 || !has_form()) return;
    b_.before(walk_).at(walk_->loc);
    may_end_early_ = has_loops();
    make_slots();
    std::vector<Value*> init;
    for (size_t k = 3; k < walk_->operand_count(); k++) init.push_back(walk_->operand(k));
    Inst* strips = begin_strips(init);
    for (size_t k = 0; k + 1 < parts_.size(); k++) {
      Value* any = common(k);
      rare(parts_[k].branch, any);
    }
    b_.yield(last(strips->region(0)->args.subspan(1)));
    for (size_t k = 0; k < walk_->results.size(); k++)
      walk_->result(k)->replace_with(strips->result(k));
    walk_->erase();
  }

 private:
  struct Part {
    std::vector<Inst*> code;
    Inst* branch = nullptr;  ///< the rare branch that ends it; none: the last part
  };

  /// Fills `parts_`, and says of each value where it becomes known: its part's number, and half a
  /// part later (counted in halves) the results of the rare branch.
  void cut() {
    parts_.emplace_back();
    for (Inst* inst = body_->first; inst != body_->last; inst = inst->next) {
      size_t now = 2 * (parts_.size() - 1);
      known_[inst] = is_rare(inst) ? now + 1 : now;
      if (!is_rare(inst)) {
        parts_.back().code.push_back(inst);
        continue;
      }
      parts_.back().branch = inst;
      parts_.emplace_back();
    }
  }

  bool has_form() const {
    if (!is_constant(walk_->operand(2), 1)) return false;
    for (const Part& part : parts_) {
      for (const Inst* inst : part.code)
        if (inst->is(Op::slot)) return false;
      if (part.branch && !is_usually_pure(part.branch)) return false;
    }
    return carried_values_come_last();
  }

  bool carried_values_come_last() const {
    bool good = true;
    auto look = [&](Value* v) { good &= v->region != body_ || v->index == 0; };
    for (size_t k = 0; k + 1 < parts_.size(); k++) {
      for (const Inst* inst : parts_[k].code) outer_operands(inst, look);
      outer_operands(parts_[k].branch, look);
    }
    return good;
  }

  // ---- what crosses from one part to the next

  /// Do any but the last part hold loops in what they do for all iterations?
  bool has_loops() const {
    bool found = false;
    auto look = [&](const Inst* inst) { found |= inst->is(Op::loop) || inst->is(Op::while_); };
    for (size_t k = 0; k + 1 < parts_.size(); k++)
      for (const Inst* inst : parts_[k].code) {
        look(inst);
        for (Region* region : inst->regions) walk(region, look);
      }
    return found;
  }

  void make_slots() {
    for (size_t k = 0; k < parts_.size(); k++) {
      for (const Inst* inst : parts_[k].code) keep_for(inst, 2 * k);
      if (!parts_[k].branch) continue;
      // The condition and what the rare region uses are read in a loop of their own.
      keep_for(parts_[k].branch, 2 * k + 1);
      for (Value& v : parts_[k].branch->results) keep(&v);
    }
    keep_for(body_->last, 2 * parts_.size() - 2);
  }

  void keep_for(const Inst* user, size_t when) {
    outer_operands(user, [&](Value* v) {
      if (!v->inst || is_shared(v)) return;
      auto known = known_.find(v->inst);
      if (known != known_.end() && known->second < when) keep(v);
    });
  }

  /// Keeps what the part has just made and a later one will read.
  void put_kept(size_t when) {
    for (Value* v : kept_) {
      auto known = known_.find(v->inst);
      if (known != known_.end() && known->second == when) b_.put(slots_.at(v), within_, map_.at(v));
    }
  }

  // ---- one strip's share of a part

  /// The code up to the branch and the branch's pure region, for all; yields whether any iteration
  /// wants the other one.
  Value* common(size_t part) {
    const Inst* branch = parts_[part].branch;
    Value* none = b_.integer(Type::u32, 0);
    std::vector<Value*> any = each(parallel_walk, {&none, 1}, [&](std::span<Value> carried) {
      for (const Inst* inst : parts_[part].code) copy(inst);
      put_kept(2 * part);
      take(branch, 1);
      Value* wanted = b_.convert(need(branch->operand(0)), Type::u32);
      return std::vector{b_.binary(Op::bit_or, &carried[0], wanted)};
    });
    return any[0];
  }

  void rare(const Inst* branch, Value* any) {
    where(b_.binary(Op::ne, any, b_.integer(Type::u32, 0)), [&] {
      each(0, {}, [&](std::span<Value>) {
        where(need(branch->operand(0)), [&] { take(branch, 0); });
        return std::vector<Value*>();
      });
    });
  }

  /// One region of a branch in the part being made; its results are kept.
  void take(const Inst* branch, size_t which) {
    const Region* region = branch->region(which);
    copy_all(region);
    for (size_t k = 0; k < branch->results.size(); k++)
      b_.put(slots_.at(branch->result(k)), within_, need(region->last->operand(k)));
  }

  /// What is behind the last branch; carries what the walk carries.
  std::vector<Value*> last(std::span<Value> init) {
    std::vector<Value*> from;
    for (Value& v : init) from.push_back(&v);
    return each(parallel_walk, from, [&](std::span<Value> carried) {
      for (size_t k = 0; k < carried.size(); k++) map_[body_->arg(k + 1)] = &carried[k];
      for (const Inst* inst : parts_.back().code) copy(inst);
      std::vector<Value*> next;
      for (const Use& use : body_->last->operands) next.push_back(need(use.value));
      return next;
    });
  }

  std::vector<Part> parts_;
  std::unordered_map<const Inst*, size_t> known_;
};

}  // namespace

void defer_rare_branches(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  for (Inst* walk : walks_of(kernel)) Deferrer(kernel, walk, target.strip).run();
}

}  // namespace quern::ir
