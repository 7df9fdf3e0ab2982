#pragma once
// A launch that is recorded, and gone back through by whoever has launched it.
#include <optional>

#include "autodiff/tapes/launches.h"
#include "dsl/objects.h"

namespace quern::autodiff {

/// Records a launch of the kernel with these arguments in `recorded`, and launches it, or what is augmented
/// in its place. `reversed`: of the kernel.
detail::LaunchObject* launch_recorded(detail::KernelObject& kernel, Reversed& reversed,
                                      std::span<const runtime::Argument> arguments, Loc loc,
                                      std::optional<Recorded>& recorded);

}  // namespace quern::autodiff
