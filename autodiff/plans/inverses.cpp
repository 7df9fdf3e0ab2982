#include "autodiff/plans/inverses.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

namespace quern::autodiff {

using namespace ir;

namespace {

/// Operations that are looked at for one inverse: each of choices one behind another doubles them.
constexpr int most_steps = 128;

bool is_constant(const Value* v) { return v->inst && v->inst->is(Op::constant); }

/// The two values of which a `select` or a branch passes on one.
std::array<const Value*, 2> choices(const Value* v) {
  const Inst* inst = v->inst;
  if (inst->is(Op::select)) return {inst->operand(1), inst->operand(2)};
  return {inst->region(0)->terminator()->operand(v->index),
          inst->region(1)->terminator()->operand(v->index)};
}

bool is_choice(const Value* v) {
  return v->inst && (v->inst->is(Op::select) || v->inst->is(Op::if_));
}

/// The number by which a product of `odd` is one of 1, modulo 2^64.
uint64_t inverse_of(uint64_t odd) {
  uint64_t inverse = odd;  // modulo 2^3; each step doubles the bits
  for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

}  // namespace

bool is_passed_on(const Inst* loop, size_t k) {
  return loop->is(Op::loop) ||
         loop->region(0)->terminator()->operand(1 + k) == loop->region(0)->arg(k);
}

Inverses::Inverses(const Inst* loop) : loop_(loop), body_(loop->regions.back()) {
  if (loop->is(Op::while_)) learn(loop->region(0)->terminator()->operand(0), true);
}

void Inverses::learn(const Value* flag, bool is) {
  if (!flags_.try_emplace(flag, is).second) return;
  if (!flag->inst) {  // the test's own: what the body has left
    if (flag->region == loop_->region(0) && loop_->is(Op::while_))
      learn(body_->terminator()->operand(flag->index), is);
    return;
  }
  const Inst* inst = flag->inst;
  if (inst->is(Op::bit_not)) return learn(inst->operand(0), !is);
  if (inst->is(is ? Op::bit_and : Op::bit_or)) {
    learn(inst->operand(0), is);
    learn(inst->operand(1), is);
  } else if (is_choice(flag)) {
    const auto of = choices(flag);
    for (size_t k = 0; k < 2; k++)
      if (is_constant(of[k]) && bool(of[k]->inst->imm) != is) {
        learn(inst->operand(0), k == 1);
        learn(of[1 - k], is);
      }
  }
}

/// Behind choices by flags that are known.
const Value* Inverses::seen(const Value* v) const {
  while (is_choice(v)) {
    const auto flag = flags_.find(v->inst->operand(0));
    if (flag == flags_.end()) break;
    v = choices(v)[flag->second ? 0 : 1];
  }
  return v;
}

/// Of one carried value.
class Inverse {
 public:
  Inverse(const Inverses& of, Builder& b, size_t k, const Inverses::Known& known)
      : of_(of),
        b_(b),
        start_(of.body_->arg(of.body_->args.size() - of.loop_->results.size() + k)),
        known_(known) {
    leading_.insert(start_);
    find_leading(of.body_);
  }

  /// What start_ is where `v` is a number that equals `now` modulo 2^bits.
  Value* undo(const Value* v, Value* now, unsigned bits) {
    v = of_.seen(v);
    if (v == start_) return bits >= bit_width(v->type) ? now : nullptr;
    if (!leads(v) || is_float(v->type) || ++steps_ > most_steps) return nullptr;
    const Inst* inst = v->inst;
    switch (inst->op) {
      case Op::add: return undo_by(inst, Op::sub, now, bits);
      case Op::sub: return undo_sub(inst, now, bits);
      case Op::neg:
      case Op::bit_not: return undo(inst->operand(0), b_.unary(inst->op, now), bits);
      case Op::bit_xor:
        return leads(inst->operand(0)) && leads(inst->operand(1))
                   ? undo_shifted(inst, now, bits)
                   : undo_by(inst, Op::bit_xor, now, bits);
      case Op::mul: return undo_mul(inst, now, bits);
      case Op::convert:
      case Op::bitcast: return undo_convert(inst, now, bits);
      case Op::select:
      case Op::if_: return undo_choice(v, now, bits);
      default: return nullptr;
    }
  }

 private:
  /// Is it computed from start_, in the round?
  bool leads(const Value* v) const { return leading_.contains(of_.seen(v)); }
  void find_leading(const Region* region) {
    for (const Inst* inst : *region) {
      for (const Region* r : inst->regions) find_leading(r);
      const bool any =
          std::ranges::any_of(inst->operands, [&](const Use& u) { return leads(u.value); });
      for (const Value& v : inst->results)
        if (any || (inst->is(Op::if_) && std::ranges::any_of(choices(&v), [&](const Value* choice) {
                      return leads(choice);
                    })))
          leading_.insert(&v);
    }
  }

  /// The value as it was in the round, made again of what is known; else null.
  Value* made(const Value* v) {
    v = of_.seen(v);
    if (const auto flag = of_.flags_.find(v); flag != of_.flags_.end())
      return b_.boolean(flag->second);
    const Inst* inst = v->inst;
    if (!inst || !encloses(of_.body_, inst->parent)) return known_(v);
    if (const auto there = made_.find(v); there != made_.end()) return there->second;
    const bool is_exact = is_pure(inst->op) && inst->regions.empty() && inst->results.size() == 1 &&
                          !inst->is(Op::apply) && !is_float(v->type);
    if (!is_exact || ++steps_ > most_steps) return nullptr;
    for (const Use& use : inst->operands) {
      Value* operand = is_float(use.value->type) ? nullptr : made(use.value);
      if (!operand) return nullptr;
      made_[use.value] = operand;
    }
    return clone_inst(b_, inst, made_)->result();
  }

  Value* undo_by(const Inst* inst, Op op, Value* now, unsigned bits) {
    const size_t k = leads(inst->operand(0)) ? 0 : 1;
    Value* other = made(inst->operand(1 - k));
    return other ? undo(inst->operand(k), b_.binary(op, now, other), bits) : nullptr;
  }

  Value* undo_sub(const Inst* inst, Value* now, unsigned bits) {
    const bool is_first = leads(inst->operand(0));
    Value* other = made(inst->operand(is_first ? 1 : 0));
    if (!other) return nullptr;
    return is_first ? undo(inst->operand(0), b_.add(now, other), bits)
                    : undo(inst->operand(1), b_.sub(other, now), bits);
  }

  Value* undo_mul(const Inst* inst, Value* now, unsigned bits) {
    const size_t k = leads(inst->operand(0)) ? 0 : 1;
    const Value* factor = of_.seen(inst->operand(1 - k));
    if (!is_constant(factor) || factor->inst->imm % 2 == 0) return nullptr;
    const Bits inverse = truncate(inverse_of(factor->inst->imm), factor->type);
    return undo(inst->operand(k), b_.mul(now, b_.constant(factor->type, inverse)), bits);
  }

  /// a ^ a << n, or an unsigned a ^ a >> n: of the linear maps I + N these are, with N^m = 0, the
  /// inverse is (I + N) (I + N²) (I + N⁴) …, as bits are added modulo 2.
  Value* undo_shifted(const Inst* inst, Value* now, unsigned bits) {
    const Type type = inst->type();
    const unsigned width = bit_width(type);
    for (size_t k = 0; k < 2; k++) {
      const Value* shifted = of_.seen(inst->operand(1 - k));
      const Inst* shift = shifted->inst;
      if (!shift || !(shift->is(Op::shl) || shift->is(Op::shr)) ||
          of_.seen(shift->operand(0)) != of_.seen(inst->operand(k)) ||
          !is_constant(shift->operand(1)))
        continue;
      const auto by = unsigned(shift->operand(1)->inst->imm % width);
      if (by == 0 || (shift->is(Op::shr) && (is_signed(type) || bits < width))) return nullptr;
      for (unsigned n = by; n < width; n *= 2)
        now = b_.binary(Op::bit_xor, now,
                        b_.binary(shift->op, now, b_.constant(shift->operand(1)->type, n)));
      return undo(inst->operand(k), now, bits);
    }
    return nullptr;
  }

  Value* undo_convert(const Inst* inst, Value* now, unsigned bits) {
    const Type from = inst->operand(0)->type;
    if (!is_int(from) || !is_int(inst->type())) return nullptr;
    bits = std::min({bits, bit_width(from), bit_width(inst->type())});
    return undo(inst->operand(0), b_.convert(now, from), bits);
  }

  Value* undo_choice(const Value* v, Value* now, unsigned bits) {
    Value* condition = made(v->inst->operand(0));
    if (!condition) return nullptr;
    const auto of = choices(v);
    Value* first = undo(of[0], now, bits);
    Value* second = first ? undo(of[1], now, bits) : nullptr;
    return second ? b_.select(condition, first, second) : nullptr;
  }

  const Inverses& of_;
  Builder& b_;
  const Value* const start_;
  const Inverses::Known& known_;
  std::unordered_set<const Value*> leading_;
  ValueMap made_;
  int steps_ = 0;
};

Value* Inverses::start(Builder& b, size_t k, Value* end, const Known& known) const {
  return Inverse(*this, b, k, known)
      .undo(body_->terminator()->operand(k), end, bit_width(end->type));
}

// ---- which of them

namespace {

class Search {
 public:
  Search(const Inst* loop, const std::vector<bool>& wanted,
         const std::function<bool(const Region*)>& pays)
      : loop_(loop),
        wanted_(wanted),
        pays_(pays),
        inverses_(loop),
        body_(loop->regions.back()),
        first_(body_->args.size() - loop->results.size()),
        states_(wanted.size(), unknown),
        found_by_(wanted.size()) {}

  std::vector<size_t> found() {
    for (size_t k = 0; k < wanted_.size(); k++)
      if (wanted_[k]) is_found(k);
    for (size_t k = 0; k < wanted_.size(); k++)
      if (wanted_[k] && states_[k] == yes) need(k);
    std::erase_if(order_, [&](size_t k) { return !needed_.contains(k); });
    return order_;
  }

 private:
  enum State : uint8_t { unknown, open, yes, no };

  bool is_found(size_t k) {
    if (states_[k] != unknown) return states_[k] == yes;
    const Type type = body_->arg(first_ + k)->type;
    states_[k] = no;
    if (is_float(type) || !is_passed_on(loop_, k)) return false;
    states_[k] = open;
    Kernel kernel;  // what it takes to find it
    Builder b(kernel);
    Region* steps = b.make_region();
    b.at_end(steps);
    const auto known = [&](const Value* v) -> Value* {
      if (!v->inst && v->region == body_ && v->index >= first_) {
        if (!is_known(v->index - first_)) return nullptr;
        found_by_[k].push_back(v->index - first_);
      }
      return b.param(0, v->type);
    };
    const bool is = inverses_.start(b, k, b.param(0, type), known) && pays_(steps);
    states_[k] = is ? yes : no;
    if (is) order_.push_back(k);
    return is;
  }

  /// Is the value known where a round begins, before those that are found by it?
  bool is_known(size_t k) {
    if (states_[k] == open || !is_passed_on(loop_, k)) return false;
    return is_found(k) || wanted_[k];
  }

  void need(size_t k) {
    if (states_[k] != yes || !needed_.insert(k).second) return;
    for (size_t by : found_by_[k]) need(by);
  }

  const Inst* const loop_;
  const std::vector<bool>& wanted_;
  const std::function<bool(const Region*)>& pays_;
  const Inverses inverses_;
  const Region* const body_;
  const size_t first_;
  std::vector<State> states_;
  std::vector<std::vector<size_t>> found_by_;
  std::vector<size_t> order_;
  std::unordered_set<size_t> needed_;
};

}  // namespace

std::vector<size_t> found_by_inverses(const Inst* loop, const std::vector<bool>& wanted,
                                      const std::function<bool(const Region*)>& pays) {
  return Search(loop, wanted, pays).found();
}

}  // namespace quern::autodiff
