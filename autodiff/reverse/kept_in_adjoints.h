#pragma once
// Values that one parallel loop computes, and one behind it again, for the same iterations: the
// first keeps them where the second will write adjoints.
//
// What a derivative is of often reduces before it is known what the terms' adjoints are: of log Σ
// exp xᵢ all terms are summed, and exp xᵢ / Σ is the adjoint of xᵢ. Where each iteration of the
// second loop writes an adjoint of its own, which nobody has read or written before, there is room
// for one value of that type: it is stored there, and loaded by the iteration that overwrites it.
// So what is dear is computed once, and takes no memory.
//
// Expects: a reverse kernel at level structured, optimised, behind assign_adjoints. What it reads
// of the primal's fields it never writes: they are what they were before the primal's launch.
// Guarantees: the same bits. Of each component of a field that is overwritten the value is kept
// that spares most, if that is more than it takes to keep it (costs.h). Linear, but for the number
// of loops. QUERN_DUMP=derivatives prints what was kept.
#include <cstdint>
#include <span>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::autodiff {

/// `companions`: the bindings of adjoints, of which those are overwritten that `assigned` says.
/// `primal`: how many bindings are the primal's. `shapes`: as gather_terms takes them. Comes back:
/// was anything kept?
bool keep_in_adjoints(ir::Kernel& kernel, std::span<const uint32_t> companions,
                      const std::vector<bool>& assigned, size_t primal,
                      std::span<const uint32_t> shapes);

}  // namespace quern::autodiff
