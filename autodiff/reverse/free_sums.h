#pragma once
// Sums over the rounds of a loop that going back may add up in any order, as vectors do.
//
// Where a reverse kernel computes values again, derivatives are all that most of them go into. A
// running sum among these need not have the bits it had: outside of strict mode it is marked
// `reassociate`. What a comparison, an integer or the value of the kernel is made of keeps its
// order: going back takes the branches that were taken.
#include <unordered_set>

#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Additions and subtractions of a kernel at level structured, without calls, that only add to what
/// a loop carries. `yields_values`: the kernel's results are wanted as they were. `number`: so is
/// what is added to this binding's element; no_binding: there is none.
std::unordered_set<const ir::Inst*> free_sums(const ir::Kernel& kernel, bool yields_values,
                                              uint32_t number);

}  // namespace quern::autodiff
