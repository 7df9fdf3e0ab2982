#include "ir/passes/walks/interleave_walks.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "ir/analysis/affine.h"
#include "ir/analysis/facts.h"
#include "ir/analysis/uniformity.h"
#include "ir/passes/walks/strips.h"

namespace quern::ir {

namespace {

/// Inner loops of at most this many constant rounds are better unrolled.
constexpr uint64_t few_rounds = 16;

bool is_straight(const Inst* inst) {
  return inst->regions.empty() && !inst->is(Op::rmw) && !inst->is(Op::slot) &&
         !has(inst->op, flag::slots);
}

bool is_straight(const Region* region) {
  bool straight = true;
  for (const Inst* inst : *region) straight = straight && is_straight(inst);
  return straight;
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
    for (const Part& part : parts_) {
      straight(part);
      if (part.inner) rounds(part.inner);
    }
    b_.yield();
    walk_->erase();
  }

 private:
  /// Straight code, and the inner loop behind it; the last part has none.
  struct Part {
    std::vector<Inst*> code;
    Inst* inner = nullptr;
  };

  bool has_form() {
    if (walk_->operand_count() != 3 || !is_constant(walk_->operand(2), 1)) return false;
    parts_.emplace_back();
    for (Inst* inst = body_->first; inst != body_->last; inst = inst->next) {
      part_of_[inst] = parts_.size() - 1;
      if (is_straight(inst)) {
        parts_.back().code.push_back(inst);
      } else {
        if (!is_inner(inst)) return false;
        parts_.back().inner = inst;
        parts_.emplace_back();
      }
    }
    return parts_.size() > 1 && pays();
  }

  bool is_inner(const Inst* inst) const {
    if (!inst->is(Op::loop) || has_few_rounds(inst)) return false;
    for (size_t k = 0; k < 3; k++)
      if (!is_shared(inst->operand(k))) return false;
    return is_straight(inst->region(0));
  }

  // ---- is it worth it

  /// Neighbours in the walk must touch the same or neighbouring elements in each round: else a
  /// strip would touch as many cache lines as it has iterations, over and over.
  bool pays() {
    for (const Part& part : parts_)
      if (part.inner) uniform_.assume(part.inner->region(0)->arg(0));  // compared in one round
    for (const Part& part : parts_)
      if (part.inner && !touches_neighbours(part.inner->region(0))) return false;
    return true;
  }

  bool touches_neighbours(const Region* round) {
    for (const Inst* inst : *round) {
      const bool writes = inst->is(Op::write);
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

  void make_slots() {
    for (const Part& part : parts_)
      if (part.inner)
        for (const Value& v : part.inner->results) slots_[&v] = array(v.type);
    for (size_t k = 0; k < parts_.size(); k++) {
      for (const Inst* inst : parts_[k].code) keep_earlier(inst, k);
      if (!parts_[k].inner) continue;
      for (const Inst* inst : *parts_[k].inner->region(0)) keep_earlier(inst, k + 1);
    }
  }

  /// What the instruction uses of parts before this one.
  void keep_earlier(const Inst* inst, size_t part) {
    for (const Use& use : inst->operands) {
      const auto made = use.value->inst ? part_of_.find(use.value->inst) : part_of_.end();
      if (made != part_of_.end() && made->second < part) keep(use.value);
    }
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

  /// The operands of `from`, from number `first` on, become what the inner loop carries.
  void put_carried(const Inst* inner, const Inst* from, size_t first) {
    for (size_t k = 0; k < inner->results.size(); k++)
      b_.put(slots_.at(inner->result(k)), within_, need(from->operand(first + k)));
  }

  void straight(const Part& part) {
    if (part.code.empty() && !part.inner) return;
    each_in_strip([&] {
      for (const Inst* inst : part.code) copy(inst);
      for (Value* v : kept_)
        if (std::ranges::find(part.code, v->inst) != part.code.end())
          b_.put(slots_.at(v), within_, map_.at(v));
      if (part.inner) put_carried(part.inner, part.inner, 3);
    });
  }

  void rounds(const Inst* inner) {
    Inst* loop = b_.loop(inner->operand(0), inner->operand(1), inner->operand(2));
    Region* around = b_.region();
    const Region* round = inner->region(0);
    b_.at_end(loop->region(0));
    each_in_strip([&] {
      map_[round->arg(0)] = loop->region(0)->arg(0);
      for (size_t k = 0; k < inner->results.size(); k++)
        map_[round->arg(k + 1)] = b_.get(slots_.at(inner->result(k)), within_);
      copy_all(round);
      put_carried(inner, round->last, 0);
    });
    b_.yield();
    b_.at_end(around);
  }

  std::vector<Part> parts_;
  std::unordered_map<const Inst*, size_t> part_of_;  ///< of those directly in the body
  AffineForms forms_{AffineForms::through_conversions};
  Uniformity uniform_;
};

}  // namespace

void interleave_walks(Kernel& kernel, const TargetTraits& target) {
  if (target.strip == 0) return;
  for (Inst* walk : walks_of(kernel)) Interleaver(kernel, walk, target.strip).run();
}

}  // namespace quern::ir
