#include "ir/passes/walks/interleave_walks.h"

#include <optional>
#include <unordered_set>

#include "ir/analysis/affine.h"
#include "ir/analysis/facts.h"
#include "ir/analysis/uniformity.h"
#include "ir/passes/walks/strips.h"

namespace quern::ir {

namespace {

/// Inner loops of at most this many constant rounds are better unrolled.
constexpr uint64_t few_rounds = 16;

bool is_straight(const Region* region, const Inst* but = nullptr) {
  for (const Inst* inst = region->first; inst; inst = inst->next) {
    if (inst == but) continue;
    if (!inst->regions.empty() || inst->is(Op::rmw) || inst->is(Op::slot) ||
        has(inst->op, flag::slots))
      return false;
  }
  return true;
}

bool has_few_rounds(const Inst* loop) {
  const Inst *lo = constant_of(loop->operand(0)), *hi = constant_of(loop->operand(1));
  if (!lo || !hi) return false;
  Type t = loop->operand(0)->type;
  return truncate(hi->imm - lo->imm, t) <= few_rounds;
}

class Interleaver : Strips {
 public:
  Interleaver(Kernel& kernel, Inst* walk, int64_t strip)
      : Strips(kernel, walk, strip), uniform_(kernel, body_) {}

  /// Changes the walk where it has the form; it is gone then.
  void run() {
    if (!has_form()) return;
    b_.before(walk_).at(walk_->loc);
    make_slots();
    begin_strips();
    before();
    rounds();
    after();
    b_.yield();
    walk_->erase();
  }

 private:
  bool has_form() {
    if (walk_->operand_count() != 3 || !is_constant(walk_->operand(2), 1)) return false;
    for (Inst* inst : *body_) {
      if (inst->regions.empty()) continue;
      if (inner_ || !inst->is(Op::loop)) return false;
      inner_ = inst;
    }
    if (!inner_ || has_few_rounds(inner_)) return false;
    for (size_t k = 0; k < 3; k++)
      if (!is_shared(inner_->operand(k))) return false;
    return is_straight(body_, inner_) && is_straight(inner_->region(0)) && pays();
  }

  // ---- is it worth it

  /// Neighbours in the walk must touch the same or neighbouring elements in each round: else a
  /// strip would touch as many cache lines as it has iterations, over and over.
  bool pays() {
    uniform_.assume(inner_->region(0)->arg(0));  // neighbours are compared in one round
    for (Inst* inst : *inner_->region(0)) {
      bool writes = inst->is(Op::write);
      if (!writes && !inst->is(Op::read)) continue;
      std::optional<int64_t> stride = stride_of(inst->operand(0));
      if (!stride) return false;
      if (*stride != byte_size(inst->elem) && (writes || *stride != 0)) return false;
    }
    return true;
  }

  /// By how much the value grows from one iteration of the walk to the next, where that is known.
  std::optional<int64_t> stride_of(const Value* v) {
    const Affine& form = forms_.of(v);
    for (const Affine::Term& term : form.terms) {
      if (term.symbol != body_->arg(0) && !uniform_(term.symbol)) return std::nullopt;
    }
    return form.factor_of(body_->arg(0));
  }

  // ---- what crosses from one part to the next

  bool is_before_inner(const Value* v) const {
    return v->inst && v->inst->parent == body_ && head_.contains(v->inst);
  }

  void make_slots() {
    for (Inst* inst = body_->first; inst != inner_; inst = inst->next) head_.insert(inst);
    for (Inst* inst = inner_->next; inst != body_->last; inst = inst->next) tail_.push_back(inst);
    for (const Value& v : inner_->results) carried_.push_back(b_.slot(v.type, uint64_t(strip_)));
    auto operands = [&](const Inst* inst) {
      for (const Use& use : inst->operands)
        if (is_before_inner(use.value)) keep(use.value);
    };
    for (Inst* inst : *inner_->region(0)) operands(inst);
    for (Inst* inst : tail_) operands(inst);
  }

  // ---- one iteration's share of a part

  /// A loop over the strip; `fill` makes its body.
  template <class F>
  void each_in_strip(F&& fill) {
    each(parallel_walk, {}, [&](std::span<Value>) {
      fill();
      return std::vector<Value*>();
    });
  }

  void put_carried(const Inst* from, size_t first) {
    for (size_t k = 0; k < carried_.size(); k++)
      b_.put(carried_[k], within_, need(from->operand(first + k)));
  }

  void before() {
    each_in_strip([&] {
      for (const Inst* inst = body_->first; inst != inner_; inst = inst->next)
        clone_inst(b_, inst, map_);
      for (Value* v : kept_) b_.put(slots_.at(v), within_, map_.at(v));
      put_carried(inner_, 3);
    });
  }

  void rounds() {
    Inst* loop = b_.loop(inner_->operand(0), inner_->operand(1), inner_->operand(2));
    Region* around = b_.region();
    const Region* round = inner_->region(0);
    b_.at_end(loop->region(0));
    each_in_strip([&] {
      map_[round->arg(0)] = loop->region(0)->arg(0);
      for (size_t k = 0; k < carried_.size(); k++)
        map_[round->arg(k + 1)] = b_.get(carried_[k], within_);
      copy_all(round);
      put_carried(round->last, 0);
    });
    b_.yield();
    b_.at_end(around);
  }

  void after() {
    if (tail_.empty()) return;
    each_in_strip([&] {
      for (size_t k = 0; k < carried_.size(); k++)
        map_[inner_->result(k)] = b_.get(carried_[k], within_);
      for (const Inst* inst : tail_) copy(inst);
    });
  }

  Inst* inner_ = nullptr;
  std::unordered_set<const Inst*> head_;
  std::vector<Inst*> tail_;
  std::vector<Value*> carried_;
  AffineForms forms_{AffineForms::through_conversions};
  Uniformity uniform_;
};

}  // namespace

void interleave_walks(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  for (Inst* walk : walks_of(kernel)) Interleaver(kernel, walk, target.strip).run();
}

}  // namespace quern::ir
