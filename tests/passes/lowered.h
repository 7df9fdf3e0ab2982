#pragma once
// A plain machine for lowered kernels: tasks run chunk by chunk or thread by thread on real memory,
// in order, as the schedule says.
#include "quern/ir/lower.h"
#include "tests/passes/reference.h"

namespace quern::test {

/// How the tasks are cut up: iterations of a chunk where the task leaves it open; threads of an
/// element task.
struct Cut {
  uint64_t grain = 1;
  uint64_t threads = 1;
};

struct Report {
  bool failed = false;
  uint32_t site = 0;
  int64_t iteration = 0;
  std::vector<ir::Bits> values;
};

/// Runs a lowered kernel whose fields are one axis each. Effects of the outcome are what the print
/// ring holds. A failed check is told in `report`.
Outcome run_lowered(const ir::Kernel& kernel, const std::vector<std::vector<ir::Bits>>& fields,
                    size_t steps, Cut cut, Report* report = nullptr);

}  // namespace quern::test
