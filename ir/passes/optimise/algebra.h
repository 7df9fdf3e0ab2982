#pragma once
// The rewriting rules of simplify: one instruction looked at by itself.
#include "quern/ir/builder.h"

namespace quern::ir {

/// A value that always equals the result of the pure instruction `inst`, bit for bit, and costs
/// less: an operand, a constant, or new instructions made at the builder's point (just before
/// `inst`). Null where no rule applies. Integer identities are used freely; of the floating ones
/// only those that hold for zeros, infinities and NaNs. Nothing that could raise an error of
/// checked mode is folded away.
Value* simpler(Builder& b, const Kernel& kernel, Inst* inst);

}  // namespace quern::ir
