#pragma once
// Runs kernels whose fields have one axis, at any level, on the interpreter.
#include <vector>

#include "backends/interpreter/interpreter.h"

namespace quern::test {

/// What the bindings hold: a field's elements, a scalar's one value.
using Fields = std::vector<std::vector<ir::Bits>>;

struct Outcome {
  std::vector<ir::Bits> results;
  Fields fields;
  std::vector<ir::Bits> printed;  ///< the values of all lines, in order
  bool ended = true;              ///< false: ran out of Options::max_steps
  // Of the check that failed first:
  bool failed = false;
  uint32_t site = 0;
  int64_t iteration = 0;
  std::vector<ir::Bits> values;
  bool operator==(const Outcome&) const = default;
};

/// Runs `kernel` with random seed 7 as launch 2 since that was set.
Outcome run(const ir::Kernel& kernel, const Fields& fields,
            const interpreter::Options& options = {});

}  // namespace quern::test
