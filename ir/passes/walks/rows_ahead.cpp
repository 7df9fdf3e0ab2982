#include "ir/passes/walks/rows_ahead.h"

#include "ir/analysis/facts.h"

namespace quern::ir {

namespace {
/// What a core has for itself, about; a line of it; and what it is worth to find one address.
constexpr int64_t cached_bytes = 1 << 20, line_bytes = 64;
constexpr int most_instructions = 12;

/// Operations of integers by which indices are made that change by as much from round to round. Of
/// others, as a product of two that vary, hints are wrong, which does no harm.
bool is_even(const Inst* inst) {
  switch (inst->op) {
    case Op::constant:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::convert:
    case Op::bitcast: return !is_float(inst->result()->type);
    default: return false;
  }
}
}  // namespace

void RowsAhead::name(const Inst* read, Value* first, Value* count) {
  const Inst* known_step = constant_of(loop_->operand(2));
  const int64_t step = known_step ? to_signed(known_step->imm, index_->type) : 0;
  const Place now = step == 0 ? Place{} : place_of(read->operand(0), first, index_);
  if (!now.start) return;
  Value* next = b_.add(index_, b_.integer(index_->type, step));
  const Place neighbour =
      place_of(read->operand(0), b_.add(first, b_.integer(Type::i64, 1)), index_);
  const Place ahead = place_of(read->operand(0), first, next);
  Value *lo = shared_(loop_->operand(0)), *hi = shared_(loop_->operand(1));
  Value* is_round = step > 0 ? b_.lt(next, hi) : b_.lt(hi, next);
  Value* span = b_.sub(b_.convert(hi, Type::i64), b_.convert(lo, Type::i64));
  Value* apart = b_.sub(ahead.bytes, now.bytes);
  apart = b_.binary(Op::max, apart, b_.sub(now.bytes, ahead.bytes));
  Value* all = b_.mul(apart, b_.div(span, b_.integer(Type::i64, step)));
  Value* is_far = b_.lt(b_.integer(Type::i64, cached_bytes), all);
  Value* size = b_.integer(Type::i64, byte_size(read->elem));
  Value* in_row = b_.binary(Op::eq, b_.sub(neighbour.bytes, now.bytes), size);
  Value* pays = b_.binary(Op::bit_and, is_round, b_.binary(Op::bit_and, is_far, in_row));
  // The row may begin anywhere in its first line.
  Value* bytes = b_.add(b_.mul(count, size), b_.integer(Type::i64, line_bytes - 1));
  Value* none = b_.integer(Type::i64, 0);
  Inst* lines = b_.loop(none, b_.select(pays, bytes, none), b_.integer(Type::i64, line_bytes));
  Region* around = b_.region();
  Inst* point = b_.point();
  b_.at_end(lines->region(0));
  Value* line = b_.offset(ahead.start, b_.add(ahead.bytes, lines->region(0)->arg(0)));
  b_.rmw(AtomicOp::load, line, read->elem, {}, read->imm);
  b_.yield();
  point ? b_.before(point) : b_.at_end(around);
}

RowsAhead::Place RowsAhead::place_of(Value* address, Value* iteration, Value* round) {
  made_.clear();
  left_ = most_instructions;
  Value* bytes = b_.integer(Type::i64, 0);
  while (address->inst && address->inst->is(Op::offset) && !known(address)) {
    Value* more = made(address->inst->operand(1), iteration, round);
    if (!more) return {};
    bytes = b_.add(bytes, more);
    address = address->inst->operand(0);
  }
  Value* start = known(address);
  return start ? Place{start, bytes} : Place{};
}

/// What all iterations share in all rounds; null: they do not.
Value* RowsAhead::known(Value* v) const {
  const Region* home = v->inst ? v->inst->parent : v->region;
  return encloses(loop_->region(0), home) ? nullptr : shared_(v);
}

/// The value in that iteration and round; null: it is not known.
Value* RowsAhead::made(Value* v, Value* iteration, Value* round) {
  if (v == body_->arg(0)) return iteration;
  if (v == loop_->region(0)->arg(0)) return round;
  if (const auto at = made_.find(v); at != made_.end()) return at->second;
  if (Value* shared = known(v)) return shared;
  const Inst* inst = v->inst;
  if (!inst || !is_even(inst) || left_-- == 0) return nullptr;
  ValueMap map;
  for (const Use& use : inst->operands) {
    Value* operand = made(use.value, iteration, round);
    if (!operand) return nullptr;
    map[use.value] = operand;
  }
  clone_inst(b_, inst, map);
  return made_[v] = map.at(v);
}

}  // namespace quern::ir
