#pragma once
// Loops whose stencils go around, made twice: for where they have an iteration for each element
// along the axes where indices go around, by the field's own extents, and for all else. In the
// first, each element gets a term from exactly one iteration, which is found by going around the
// other way; nothing has to be asked there. The loop that is not for a launch has no iterations.
#include <optional>
#include <span>

#include "autodiff/stencils/stencil.h"

namespace quern::autodiff {

struct ClosedLoops {
  ir::Inst *closed = nullptr, *open = nullptr;
  ir::Value *is_closed = nullptr, *is_open = nullptr;  ///< b1, before both
};

/// Of a loop with these stencils, which is gone then; none where nothing goes around. `shapes`: as
/// gather_terms takes them.
std::optional<ClosedLoops> close_loop(ir::Kernel& kernel, std::span<const uint32_t> shapes,
                                      ir::Inst* loop, std::span<const Stencil> stencils);

/// Does the term's index go around along that index of the loop?
inline bool goes_around(const Term& term, size_t index) {
  return !term.wrappings.empty() && term.wrappings[index].modulus;
}

}  // namespace quern::autodiff
