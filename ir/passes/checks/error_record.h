#pragma once
// Code that asks for and claims the error record: what the passes share that make it.
#include "ir/passes/checks/host_record.h"

namespace quern::ir {

/// The number of the site that stands for the end of a launch at this place; made where there is
/// none.
uint32_t stop_site(Kernel& kernel, Loc loc);

/// Makes code at the builder's point, of a task of this number.
class ErrorRecordCode {
 public:
  ErrorRecordCode(Builder& b, uint32_t task) : b_(b), task_(task) {}

  Value* address() { return b_.arg(abi::error_address, Type::address); }
  /// What the record says now; made each time it is reached.
  Value* state();
  Value* is_clear(Value* state) { return b_.binary(Op::eq, state, word(0)); }
  Value* asks_to_stop(Value* state) {
    return b_.binary(Op::ne, b_.binary(Op::bit_and, state, word(abi::stop_bit)), word(0));
  }
  /// abi::claim of the task.
  Value* claim();

  /// Where the host has asked the launch to end and nothing has answered: it ends here.
  void report_stop(uint32_t site);

 private:
  Value* word(uint32_t v) { return b_.integer(Type::u32, int64_t(v)); }

  Builder& b_;
  uint32_t task_;
};

}  // namespace quern::ir
