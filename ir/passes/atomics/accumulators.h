#pragma once
// What reductions become: accumulators in slots, and rows of partial values in a buffer.
#include <utility>

#include "ir/passes/atomics/counted.h"

namespace quern::ir {

/// Of one task. In a fixed order each reduction has 32 accumulators, unless a lane has one of its
/// own: value number k goes to accumulator k mod 32, and they are combined by halving
/// (docs/semantics.md, Reductions). The order is free: one.
class Accumulators {
 public:
  /// `b` says where code goes; `buffer` is the binding of the rows, where there are any.
  Accumulators(Builder& b, const std::vector<Reduction>& reductions, bool ordered, bool lanes,
               uint32_t buffer);

  size_t count() const { return reductions_.size(); }
  const Reduction& reduction(size_t r) const { return reductions_[r]; }
  bool is_ordered() const { return ordered_; }
  bool is_one() const { return one_; }

  /// Slots that hold the identity; those made last are meant from then on.
  void make();
  /// `number` is not asked for where there is one accumulator.
  void accumulate(size_t r, Value* number, Value* v);
  Value* total(size_t r);
  void accumulate_row(Value* number, Value* row);
  std::vector<Value*> totals();

  Value* combined(size_t r, Value* a, Value* v);
  Value* read(Value* row, size_t r);
  void write(Value* row, std::span<Value* const> values);

 private:
  Value* integer(int64_t v) { return b_.integer(Type::i64, v); }

  Builder& b_;
  const std::vector<Reduction>& reductions_;
  const uint32_t buffer_;
  const bool ordered_, one_;
  std::vector<Value*> slots_;
};

}  // namespace quern::ir
