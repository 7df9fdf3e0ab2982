#pragma once
#include "quern/ir/abi.h"

namespace quern::runtime {

/// The domain of a task, evaluated by the host at each launch: straight-line pure instructions over
/// constants, scalar parameters, extents and frame cells.
class HostExpression {
 public:
  /// `region` ends in a yield. Throws InternalError for an instruction the host cannot evaluate.
  HostExpression(const ir::Kernel& kernel, const ir::Region* region, const ir::abi::Layout& layout);

  bool reads_frame() const { return reads_frame_; }
  /// Values of the yield, sign-extended where signed. `args` and `frame` are the host's views.
  void evaluate(const std::byte* args, const std::byte* frame, std::span<int64_t> out) const;
  size_t results() const { return results_.size(); }

 private:
  enum Source : uint8_t { value, constant, argument, cell };
  struct Step {
    Source source = value;
    ir::Op op{};
    ir::Type operand{}, result{};
    uint32_t operands[3] = {};
    uint8_t count = 0;
    uint64_t imm = 0;
  };
  std::vector<Step> steps_;
  std::vector<uint32_t> results_;
  std::vector<ir::Type> types_;
  bool reads_frame_ = false;
};

}  // namespace quern::runtime
