#include "ir/passes/atomics/accumulators.h"

#include "ir/passes/atomics/atomic_rules.h"
#include "quern/ir/abi.h"

namespace quern::ir {

namespace {
constexpr int64_t several = abi::chunk_lanes;
}

Accumulators::Accumulators(Builder& b, const std::vector<Reduction>& reductions, bool ordered,
                           bool lanes, uint32_t buffer)
    : b_(b), reductions_(reductions), buffer_(buffer), ordered_(ordered), one_(!ordered || lanes) {}

void Accumulators::make() {
  slots_.clear();
  for (const Reduction& r : reductions_) {
    Value* slot = b_.slot(r.type, one_ ? 1 : several);
    Value* start = b_.constant(r.type, identity(r.op, r.type));
    slots_.push_back(slot);
    if (one_)
      b_.put(slot, start);
    else
      counted(b_, several, [&](Value* j) { b_.put(slot, j, start); });
  }
}

void Accumulators::accumulate(size_t r, Value* number, Value* v) {
  Value* slot = slots_[r];
  if (one_) {
    b_.put(slot, combined(r, b_.get(slot), v));
    return;
  }
  Value* j = b_.binary(Op::bit_and, number, integer(several - 1));
  b_.put(slot, j, combined(r, b_.get(slot, j), v));
}

Value* Accumulators::total(size_t r) {
  Value* slot = slots_[r];
  if (one_) return b_.get(slot);
  for (int64_t half = several / 2; half > 0; half /= 2)
    counted(b_, half, [&](Value* j) {
      Value* upper = b_.get(slot, b_.add(j, integer(half)));
      b_.put(slot, j, combined(r, b_.get(slot, j), upper));
    });
  return b_.get(slot, integer(0));
}

void Accumulators::accumulate_row(Value* number, Value* row) {
  for (size_t r = 0; r < count(); r++) accumulate(r, number, read(row, r));
}

std::vector<Value*> Accumulators::totals() {
  std::vector<Value*> all;
  for (size_t r = 0; r < count(); r++) all.push_back(total(r));
  return all;
}

Value* Accumulators::combined(size_t r, Value* a, Value* v) {
  const Reduction& red = reductions_[r];
  Value* out = b_.binary(operation(red.op, red.type), a, v);
  const bool sums = red.op == AtomicOp::add || red.op == AtomicOp::mul;
  if (!ordered_ && is_float(red.type) && sums) out->inst->kind |= reassociate;
  return out;
}

Value* Accumulators::read(Value* row, size_t r) {
  return b_.load(buffer_, uint32_t(r), reductions_[r].type, {&row, 1});
}

void Accumulators::write(Value* row, std::span<Value* const> values) {
  for (size_t r = 0; r < count(); r++) b_.store(buffer_, uint32_t(r), {&row, 1}, values[r]);
}

}  // namespace quern::ir
