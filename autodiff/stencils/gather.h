#pragma once
// Sums of what neighbours give: a scatter that goes back through a stencil becomes a gather.
//
// An iteration that reads elements around its own adds a term to the adjoint of each, atomically,
// as several iterations add to one. Here it keeps its terms in arrays, and a second loop over the
// elements adds up those of the iterations around: x̄[e] += Σ t_o[e - o]. (The loop shift of
// Hückelheim et al., "Automatic Differentiation for Adjoint Stencil Loops", ICPP 2019, which
// computes terms again where this one keeps them, so that it needs no loops of its own for
// borders.)
//
// Expects: a kernel at level structured, optimised.
// Guarantees: the same sums; where each index is one of the loop's plus a constant in one order
// everywhere. Where an index is that but for a border, as it is clamped or wraps, what goes
// elsewhere there stays an atomic; not in the version of a loop that runs where it wraps by the
// field's own extents (closed_loops.h). Arrays are companions of the field too, "terms 0" and on,
// eight at most for a component. What stencils there are, stencil.h says. Linear, times the number
// of terms.
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// `shapes`: of each binding another one that always has its shape, or itself. Comes back: was
/// anything changed?
bool gather_terms(ir::Kernel& kernel, std::vector<uint32_t> shapes);

}  // namespace quern::autodiff
