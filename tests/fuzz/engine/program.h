#pragma once
// A kernel with the arguments it is run on.
#include <cstdint>
#include <memory>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::fuzz {

/// What one binding is given: bits of a scalar, or elements of a field in row-major order.
struct Input {
  ir::Bits scalar = 0;
  std::vector<int64_t> shape;
  std::vector<std::vector<ir::Bits>> components;  ///< elements of each
  uint32_t memory = 0;  ///< the binding whose memory it uses: its own number, or an earlier
};

struct Program {
  uint64_t seed = 0;
  std::unique_ptr<ir::Kernel> kernel;
  std::vector<Input> inputs;  ///< one per binding
  /// Does it give the same bits on every device? Default mode leaves devices some liberties with
  /// floats that passes do not take.
  bool on_devices = true;
};

Program copy(const Program& program);

}  // namespace quern::fuzz
