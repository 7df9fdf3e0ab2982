#pragma once
// Runs the body of a math function on bits, instruction by instruction with ir::evaluate.
#include <vector>

#include "quern/ir/math.h"

namespace quern::test {

class Evaluator {
 public:
  /// `contract`: a·b ± c becomes an fma wherever a back end in default mode might make one.
  explicit Evaluator(const ir::Function& function, bool contract = false);
  ir::Bits operator()(std::initializer_list<ir::Bits> args);
  size_t parameters() const { return parameters_; }

 private:
  struct Step {
    ir::Op op{};
    ir::Type operand = ir::Type::none, result = ir::Type::none;
    ir::Bits imm = 0;
    int argument[3] = {-1, -1, -1};
    int arguments = 0;
    int out = -1;
    int fused = 0;  ///< 1: fma(a, b, c), 2: fma(a, b, -c), 3: fma(-a, b, c); arguments are a, b, c
    int branch[2] = {-1, -1};                                 ///< blocks of an if
    std::vector<int> results, loop_operands, loop_arguments;  ///< of an if
  };
  struct Block {
    std::vector<Step> steps;
    std::vector<int> yields;
  };
  int compile(const ir::Region* region);
  void run(const Block& block);
  void run_loop(const Step& step);
  int number(const ir::Value* v);

  bool contract_;
  std::vector<Block> blocks_;
  std::vector<const ir::Value*> numbered_;
  std::vector<ir::Bits> values_;
  size_t parameters_;
  int root_;
};

}  // namespace quern::test
