#pragma once
// Runs a function on bits, as the interpreter runs a task.
#include <vector>

#include "backends/interpreter/interpreter.h"
#include "quern/ir/abi.h"
#include "quern/ir/math.h"

namespace quern::test {

class Evaluator {
 public:
  /// `contract`: a·b ± c becomes an fma wherever a back end in default mode might make one.
  explicit Evaluator(const ir::Function& function, bool contract = false);
  Evaluator(const Evaluator&) = delete;
  /// Of a function of one result. Arguments past its parameters are left out.
  ir::Bits operator()(std::initializer_list<ir::Bits> args);
  size_t parameters() const { return parameters_; }

 private:
  std::unique_ptr<interpreter::Tasks> tasks_;
  ir::abi::Layout layout_;
  std::vector<std::byte> block_;  ///< the argument block
  std::vector<ir::Bits> frame_;   ///< the result first
  size_t parameters_;
  ir::abi::ErrorRecord error_;
};

}  // namespace quern::test
