#pragma once
// What a reverse kernel is passed.
#include "autodiff/reverse/pull.h"

namespace quern::autodiff {

/// Bindings of a reverse kernel behind those of its primal.
struct Declared {
  uint32_t first_seed = 0;  ///< scalars
  SiteFields sites;
  std::vector<uint32_t> companions;  ///< adjoints, of each binding of the primal
};

/// Of one axis, of these components.
ir::Binding field_of(std::string name, std::span<const ir::Type> types, Loc loc);

/// Adds them to `out.kernel`, and says in `out` which they are.
Declared declare(const Primal& primal, Reverse& out);

}  // namespace quern::autodiff
