#pragma once
// Random kernels at level `recorded`: nested control with exits, slots, fields, functions.
#include <memory>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::test {

/// Binding 0 is a field of 16 i32, 1 a field of 16 i32, 2 a scalar i32, 3 a scalar b1. The kernel
/// has two results.
std::unique_ptr<ir::Kernel> random_program(uint64_t seed);
/// Its checks become prints: what follows a failed check is compared nowhere.
void without_checks(ir::Kernel& kernel);
/// What the bindings of such a kernel hold.
std::vector<std::vector<ir::Bits>> random_inputs(uint64_t seed);

}  // namespace quern::test
