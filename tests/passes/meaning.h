#pragma once
// Does a kernel mean the same after a pass? Both are run by the interpreter on the same memory.
#include <string>

#include "quern/ir/ir.h"

namespace quern::test {

/// Empty where `before` and `after` leave the same fields, results and lines behind and fail or not
/// alike, for several inputs; else what differs. Bindings of `after` start with those of `before`.
std::string difference(const ir::Kernel& before, const ir::Kernel& after);

}  // namespace quern::test
