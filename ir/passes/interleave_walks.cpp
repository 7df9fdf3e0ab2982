#include "ir/passes/interleave_walks.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "ir/passes/facts.h"
#include "quern/ir/builder.h"

namespace quern::ir {

namespace {

/// Inner loops of at most this many constant rounds are better unrolled.
constexpr uint64_t few_rounds = 16;

bool is_straight(const Region* region, const Inst* but = nullptr) {
  for (const Inst* inst = region->first; inst; inst = inst->next) {
    if (inst == but) continue;
    if (!inst->regions.empty() || inst->is(Op::rmw) || inst->is(Op::slot) || inst->is(Op::get) ||
        inst->is(Op::put))
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

class Interleaver {
 public:
  Interleaver(Kernel& kernel, Inst* walk, int64_t lanes)
      : b_(kernel), walk_(walk), body_(walk->region(0)), lanes_(lanes) {}

  /// Changes the walk where it has the form; it is gone then.
  void run() {
    if (!has_form()) return;
    b_.before(walk_).at(walk_->loc);
    make_slots();
    Value* block = integer(lanes_);
    Inst* blocks = b_.loop(walk_->operand(0), walk_->operand(1), block);
    b_.at_end(blocks->region(0));
    base_ = blocks->region(0)->arg(0);
    Value* left = b_.sub(walk_->operand(1), base_);
    count_ = b_.binary(Op::min, left, block);
    before();
    rounds();
    after();
    b_.yield();
    walk_->erase();
  }

 private:
  Value* integer(int64_t v) { return b_.integer(Type::i64, v); }

  bool is_shared(const Value* v) const {
    return !encloses(body_, v->inst ? v->inst->parent : v->region);
  }

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
  /// block would touch as many cache lines as it has iterations, over and over.
  bool pays() {
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
  std::optional<int64_t> stride_of(Value* v) {
    if (v == body_->arg(0)) return 1;
    if (is_shared(v) || v == inner_->region(0)->arg(0)) return 0;
    if (!v->inst || !is_pure(v->inst->op)) return std::nullopt;
    auto found = strides_.find(v);
    if (found != strides_.end()) return found->second;
    const Inst* inst = v->inst;
    std::vector<std::optional<int64_t>> parts;
    bool none = true;
    for (const Use& use : inst->operands) {
      parts.push_back(stride_of(use.value));
      none &= parts.back() == 0;
    }
    std::optional<int64_t>& stride = strides_[v];
    if (none) return stride = 0;
    for (const auto& part : parts)
      if (!part) return stride;
    if (inst->is(Op::offset) || inst->is(Op::add)) stride = *parts[0] + *parts[1];
    if (inst->is(Op::sub)) stride = *parts[0] - *parts[1];
    if (inst->is(Op::convert)) stride = parts[0];
    if (inst->is(Op::mul))
      for (size_t k : {size_t(0), size_t(1)})
        if (const Inst* c = constant_of(inst->operand(k)))
          stride = *parts[1 - k] * to_signed(c->imm, v->type);
    return stride;
  }

  // ---- what crosses from one part to the next

  /// Does the value come from memory? Else it follows from the index and is computed again.
  bool from_memory(const Value* v) {
    if (is_shared(v) || !v->inst) return false;
    auto [at, is_new] = from_memory_.try_emplace(v, !is_pure(v->inst->op));
    if (!is_new || at->second) return at->second;
    bool any = false;
    for (const Use& use : v->inst->operands) any |= from_memory(use.value);
    return from_memory_[v] = any;
  }

  /// Slots for the values of the first part that the other parts need.
  void keep(Value* v) {
    if (is_shared(v) || !v->inst || v->inst->parent != body_ || v->inst == inner_) return;
    if (is_after_inner(v->inst) || slots_.contains(v) || !from_memory(v)) return;
    if (v->type == Type::address) {
      for (const Use& use : v->inst->operands) keep(use.value);
      return;
    }
    slots_[v] = b_.slot(v->type, uint64_t(lanes_));
    kept_.push_back(v);
  }

  bool is_after_inner(const Inst* inst) const {
    return std::find(tail_.begin(), tail_.end(), inst) != tail_.end();
  }

  void make_slots() {
    for (Inst* inst = inner_->next; inst != body_->last; inst = inst->next) tail_.push_back(inst);
    for (const Value& v : inner_->results) carried_.push_back(b_.slot(v.type, uint64_t(lanes_)));
    auto operands = [&](const Inst* inst) {
      for (const Use& use : inst->operands) keep(use.value);
    };
    for (Inst* inst : *inner_->region(0)) operands(inst);
    for (Inst* inst : tail_) operands(inst);
  }

  // ---- one iteration's share of a part

  /// A loop over the block; `fill` makes its body.
  template <class F>
  void each(F&& fill) {
    Value* first = integer(0);
    Inst* loop = b_.loop(first, count_, integer(1));
    loop->kind = parallel_walk;
    Region* around = b_.region();
    b_.at_end(loop->region(0));
    lane_ = loop->region(0)->arg(0);
    map_.clear();
    map_[body_->arg(0)] = b_.add(base_, lane_);
    fill();
    b_.yield();
    b_.at_end(around);
  }

  Value* need(Value* v) {
    auto found = map_.find(v);
    if (found != map_.end()) return found->second;
    if (is_shared(v)) return v;
    auto slot = slots_.find(v);
    if (slot != slots_.end()) return map_[v] = b_.get(slot->second, lane_);
    copy(v->inst);
    return map_.at(v);
  }

  void copy(const Inst* inst) {
    for (const Use& use : inst->operands) need(use.value);
    clone_inst(b_, inst, map_);
  }

  void put_carried(const Inst* from, size_t first) {
    for (size_t k = 0; k < carried_.size(); k++)
      b_.put(carried_[k], lane_, need(from->operand(first + k)));
  }

  void before() {
    each([&] {
      for (const Inst* inst = body_->first; inst != inner_; inst = inst->next)
        clone_inst(b_, inst, map_);
      for (Value* v : kept_) b_.put(slots_.at(v), lane_, map_.at(v));
      put_carried(inner_, 3);
    });
  }

  void rounds() {
    Inst* loop = b_.loop(inner_->operand(0), inner_->operand(1), inner_->operand(2));
    Region* around = b_.region();
    const Region* round = inner_->region(0);
    b_.at_end(loop->region(0));
    each([&] {
      map_[round->arg(0)] = loop->region(0)->arg(0);
      for (size_t k = 0; k < carried_.size(); k++)
        map_[round->arg(k + 1)] = b_.get(carried_[k], lane_);
      for (const Inst* inst = round->first; inst != round->last; inst = inst->next) copy(inst);
      put_carried(round->last, 0);
    });
    b_.yield();
    b_.at_end(around);
  }

  void after() {
    if (tail_.empty()) return;
    each([&] {
      for (size_t k = 0; k < carried_.size(); k++)
        map_[inner_->result(k)] = b_.get(carried_[k], lane_);
      for (const Inst* inst : tail_) copy(inst);
    });
  }

  Builder b_;
  Inst* walk_;
  Region* body_;
  int64_t lanes_;
  Inst* inner_ = nullptr;
  std::vector<Inst*> tail_;
  std::vector<Value*> carried_, kept_;
  std::unordered_map<const Value*, Value*> slots_;
  std::unordered_map<const Value*, bool> from_memory_;
  std::unordered_map<const Value*, std::optional<int64_t>> strides_;
  Value *base_ = nullptr, *count_ = nullptr, *lane_ = nullptr;
  ValueMap map_;
};

}  // namespace

void interleave_walks(Kernel& kernel, const TargetTraits& target) {
  if (target.lanes == 0) return;
  for (Task& task : kernel.tasks) {
    std::vector<Inst*> walks;
    walk(task.body, [&](Inst* inst) {
      if (inst->is(Op::loop) && inst->kind == parallel_walk) walks.push_back(inst);
    });
    for (Inst* inst : walks) Interleaver(kernel, inst, target.lanes).run();
  }
}

}  // namespace quern::ir
