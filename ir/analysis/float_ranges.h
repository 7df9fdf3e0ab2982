#pragma once
// What floats are at least and at most, and whether they may be a NaN.
//
// From conversions of integers, constants and what arithmetic, minima, square roots and rounding
// make of them. Bounds are a little wider than exact arithmetic gives them (2^-8 of their size), so
// that they hold however an operation is rounded, contracted or reassociated. They are as numbers:
// a bound of 0 says nothing about the sign of a zero.
//
// Computed on demand; what it returns holds as long as nothing in the kernel is changed.
#include <cmath>

#include "ir/analysis/ranges.h"

namespace quern::ir {

struct FloatInterval {
  double least = -HUGE_VAL, most = HUGE_VAL;
  bool may_be_nan = true;
};

class FloatRanges {
 public:
  explicit FloatRanges(Ranges& integers) : integers_(integers) {}

  FloatInterval of(const Value* v) { return of(v, 0); }
  /// Does every value fit the integer type, fractions cut off?
  bool fits(const Value* v, Type integer);

 private:
  static constexpr int deepest = 64;
  FloatInterval of(const Value* v, int depth);
  FloatInterval computed(const Inst* inst, int depth);

  Ranges& integers_;
  std::unordered_map<const Value*, FloatInterval> known_;
};

}  // namespace quern::ir
