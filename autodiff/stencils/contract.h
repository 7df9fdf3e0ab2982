#pragma once
// Loops turned round: what many iterations add to one element becomes a sum that one iteration has.
//
// Where x[i, o] gets Σ over b of what iteration (b, o) adds in round i, a second loop over (i, o)
// has rounds over b (interchange of loops that were distributed before: Allen and Kennedy,
// "Optimizing Compilers for Modern Architectures", chapters 5 and 6). The iterations of the first
// keep what it takes to compute what they add: a value of each, in companions of a field that they
// access at elements of their own ("parts 0" and on), not one of each round.
//
// Expects: a kernel at level structured, optimised.
// Guarantees: the same sums. Each element gets its sum at once, so that nothing is atomic, and
// strict kernels can be gone back through: theirs are added up by iteration and round. Of others,
// sums over much that are few are cut in pieces of 256 rounds or more, which are added atomically;
// how many pieces there are, extents decide when the kernel is launched. What can be summed so,
// contraction.h says. Linear, times the number of summands.
#include <span>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::autodiff {

/// `fields`: of each of the primal's bindings the one that its companions are derived of, or none;
/// `shapes`: of each binding another one that always has its shape, or itself. Comes back: was
/// anything changed?
bool contract_sums(ir::Kernel& kernel, std::span<const uint32_t> fields,
                   std::vector<uint32_t> shapes);

}  // namespace quern::autodiff
