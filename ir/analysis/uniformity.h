#pragma once
// Uniformity: which values are the same in every run of a region, a loop's round or an iteration.
//
// Uniform are values from outside of the region, and what pure operations that cannot fail make of
// uniform values. Loads are not: other iterations may write there.
//
// Computed on demand; what it returns holds as long as no operand is changed.
#include <unordered_map>

#include "quern/ir/ir.h"

namespace quern::ir {

class Uniformity {
 public:
  Uniformity(const Kernel& kernel, const Region* region) : kernel_(kernel), region_(region) {}
  bool operator()(const Value* v);
  /// Takes a value of the region for uniform: one that all runs which are looked at share.
  void assume(const Value* v) { known_[v] = true; }

 private:
  const Kernel& kernel_;
  const Region* region_;
  std::unordered_map<const Value*, bool> known_;
};

}  // namespace quern::ir
