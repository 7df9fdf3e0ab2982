#pragma once
#include <vector>

#include "quern/ir/ir.h"

namespace quern::interpreter {

/// What the iterations of a parallel loop gave to one reduction.
class Contributions {
 public:
  Contributions(ir::AtomicOp op, ir::Type type) : op_(op), type_(type) {}
  void add(uint64_t iteration, ir::Bits v) { all_.push_back({iteration, all_.size(), v}); }
  /// `initial` combined with all of them, in the order that docs/semantics.md gives for strict
  /// mode; other modes leave the order open.
  ir::Bits combined(ir::Bits initial, uint64_t iterations);

 private:
  struct One {
    uint64_t iteration, number;
    ir::Bits value;
  };
  ir::AtomicOp op_;
  ir::Type type_;
  std::vector<One> all_;
};

}  // namespace quern::interpreter
