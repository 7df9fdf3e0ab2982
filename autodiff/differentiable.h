#pragma once
#include "dsl/objects.h"

namespace quern::detail {

/// The kernel that is to be differentiated. Throws Error where there is none, where another one is
/// being recorded, and for one that names grad() or dual() of a parameter.
const ir::Kernel& expect_differentiable(const KernelObject* kernel, Loc loc);

}  // namespace quern::detail
