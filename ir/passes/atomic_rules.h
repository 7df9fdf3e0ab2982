#pragma once
#include "quern/ir/builder.h"

namespace quern::ir {

/// The arithmetic of an atomic or a reduction: new = operation(old, value).
Op operation(AtomicOp op, Type type);
/// The unsigned integer of the same width: what compare-and-swap compares.
Type bits_type(Type type);
/// The value an atomic leaves, from the old one and its operands (cas: expected, desired; compared
/// by bits). Not for `load`.
Value* updated(Builder& b, AtomicOp op, Value* old, std::span<Value* const> values);

}  // namespace quern::ir
