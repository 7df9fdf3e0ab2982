#pragma once
// What the callers of a kernel's functions have to know of them.
#include "quern/ir/ir.h"

namespace quern::codegen {

/// Does a call compute its results and nothing else?
bool is_pure(const ir::Function& f);

/// Does `region` fill in an error record? Then it hardly ever runs.
bool reports_error(const ir::Kernel& kernel, const ir::Region* region);

/// Does the instruction update memory in one step, or may it, as a call?
bool is_atomic(const ir::Kernel& kernel, const ir::Inst& inst);

}  // namespace quern::codegen
