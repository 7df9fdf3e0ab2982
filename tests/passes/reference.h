#pragma once
// A plain evaluator for kernels that are still one body, exits included: what passes before
// split_tasks are compared with. Parallel loops run in order. Fields have one axis.
#include <vector>

#include "quern/ir/ir.h"

namespace quern::test {

struct Outcome {
  std::vector<ir::Bits> results;
  std::vector<std::vector<ir::Bits>> fields;  ///< one per binding; scalars: one value
  std::vector<ir::Bits> effects;  ///< values printed or given to a failed check, in order
  bool ended = true;              ///< false: ran out of steps
  bool operator==(const Outcome&) const = default;
};

/// Runs `kernel` on `fields` for at most `steps` instructions.
Outcome evaluate(const ir::Kernel& kernel, std::vector<std::vector<ir::Bits>> fields, size_t steps);

}  // namespace quern::test
