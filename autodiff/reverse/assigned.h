#pragma once
// Adjoints that would have to be 0 before the launch, which adds to each once: they need neither be
// cleared nor read.
#include <cstdint>
#include <span>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Of a reverse kernel at level structured, optimised, before which all adjoints of inputs would be 0. Where
/// each element of a field's adjoints gets its only term by a plain addition in the loop over that field,
/// the addition becomes a store. Comes back: of each of `companions`, whether all that it held before is
/// overwritten. `shapes`: as gather_terms takes them. Linear.
std::vector<bool> assign_adjoints(ir::Kernel& kernel, std::span<const uint32_t> companions,
                                  std::span<const uint32_t> shapes);

}  // namespace quern::autodiff
