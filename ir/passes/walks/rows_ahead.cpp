#include "ir/passes/walks/rows_ahead.h"

namespace quern::ir {

namespace {
/// What a core has for itself, about; a line of it; and what it is worth to find one address.
constexpr int64_t cached_bytes = 1 << 20, line_bytes = 64;
constexpr int most_instructions = 12;

/// Do numbers that are made so change by as much from round to round?
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
  Value *address = read->operand(0), *step = loop_->operand(2);
  if (!step->inst || !step->inst->is(Op::constant) || step->inst->imm == 0) return;
  Value* one = b_.integer(Type::i64, 1);
  const Place now = place_of(address, first, index_);
  if (!now.start) return;
  const Place neighbour = place_of(address, b_.add(first, one), index_);
  const Place ahead = place_of(address, first, b_.add(index_, b_.convert(step, index_->type)));
  Value* lo = b_.convert(shared_(loop_->operand(0)), Type::i64);
  Value* hi = b_.convert(shared_(loop_->operand(1)), Type::i64);
  Value* apart = b_.sub(ahead.bytes, now.bytes);
  apart = b_.binary(Op::max, apart, b_.sub(now.bytes, ahead.bytes));
  Value* all = b_.mul(apart, b_.div(b_.sub(hi, lo), b_.convert(step, Type::i64)));
  Value* size = b_.integer(Type::i64, byte_size(read->elem));
  Value* is_far = b_.lt(b_.integer(Type::i64, cached_bytes), all);
  Value* in_row = b_.binary(Op::eq, b_.sub(neighbour.bytes, now.bytes), size);
  Value* none = b_.integer(Type::i64, 0);
  Value* bytes = b_.select(b_.binary(Op::bit_and, is_far, in_row), b_.mul(count, size), none);
  Inst* lines = b_.loop(none, bytes, b_.integer(Type::i64, line_bytes));
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
