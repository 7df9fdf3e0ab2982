#pragma once
// The passes by name, for text tests and tools. A pass that takes facts of a launch or a target
// gets plain ones here: every field contiguous and in a class of its own; the default TargetTraits,
// or those of the target or signature after the dot.
#include <span>
#include <string_view>

#include "quern/ir/ir.h"

namespace quern::ir {

struct NamedPass {
  std::string_view name;
  void (*run)(Kernel&);
};

/// All passes, in the order of the pipeline.
std::span<const NamedPass> passes();
/// Null where there is none of that name.
const NamedPass* pass_named(std::string_view name);

}  // namespace quern::ir
