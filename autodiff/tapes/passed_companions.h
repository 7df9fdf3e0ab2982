#pragma once
// Companions that whoever launches passes, as it has looked them up long before.
#include <span>
#include <string>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::autodiff {

struct PassedCompanions {
  struct Companion {
    uint32_t field;  ///< its number among the fields given
    std::string name;
  };
  std::vector<Companion> companions;  ///< in the order of the kernel's bindings
  std::vector<uint32_t> fields;       ///< the numbers of those that are passed still
};

/// Companions that the kernel, at level structured, derives become fields like others. `fields`:
/// the bindings that they are derived of. Those that the code does not use besides are dropped.
PassedCompanions pass_companions(ir::Kernel& kernel, std::span<const uint32_t> fields);

}  // namespace quern::autodiff
