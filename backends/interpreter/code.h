#pragma once
// A kernel made ready to run: every value has a number, every region is a vector of steps.
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "quern/ir/abi.h"
#include "quern/ir/ir.h"

namespace quern::interpreter {

struct Block;

struct Step {
  ir::Op op{};
  uint8_t kind = 0;
  bool elementwise = false;           ///< a row that ir::evaluate knows
  ir::Type type = ir::Type::none;     ///< of the first result
  ir::Type operand = ir::Type::none;  ///< of the last operand
  ir::Type index = ir::Type::none;    ///< of a loop
  ir::Type elem = ir::Type::none;
  uint32_t count = 0;                  ///< operands
  uint32_t results = 0;                ///< results; their numbers follow each other
  uint32_t result = 0;                 ///< number of the first
  uint32_t in[3] = {};                 ///< numbers of the first operands
  const uint32_t* operands = nullptr;  ///< of all
  uint64_t imm = 0;
  const Block* inner[2] = {};  ///< regions; callee
  const ir::Inst* inst = nullptr;
};

struct Block {
  std::vector<Step> steps;
  uint32_t first_arg = 0;  ///< arguments are numbered one after another
  uint32_t args = 0;
  ir::Op end = ir::Op::yield;  ///< how the region ends
  uint64_t exit = 0;           ///< loops that break_ or continue_ concerns
  std::vector<uint32_t> yields;
  std::vector<ir::Type> yield_types;
};

/// Numbers are unique in the whole kernel: no function is active twice at a time.
class Code {
 public:
  explicit Code(const ir::Kernel& kernel);

  const ir::Kernel& kernel;
  ir::abi::Layout layout;
  std::vector<ir::Bits> values;  ///< constants set, all else 0
  uint64_t slot_elements = 0;
  const Block* body = nullptr;
  struct Task {
    const Block* domain = nullptr;
    const Block* body = nullptr;
    std::vector<uint32_t> conditions;  ///< cells of the schedule that the task writes
    bool tests_record = false;         ///< its own code asks whether a check has failed
  };
  std::vector<Task> tasks;

 private:
  const Block* block(const ir::Region* region);
  Step step(const ir::Inst* inst);
  const Block* function(const ir::Region* region);
  uint32_t number(const ir::Value* v) const { return numbers_.at(v); }
  uint32_t define(std::span<const ir::Value> list);

  std::unordered_map<const ir::Value*, uint32_t> numbers_;
  std::unordered_map<const ir::Region*, const Block*> functions_;
  std::deque<Block> blocks_;
  std::deque<std::vector<uint32_t>> operands_;
};

}  // namespace quern::interpreter
