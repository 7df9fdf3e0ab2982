#pragma once
#include <functional>

#include "quern/ir/builder.h"

namespace quern::ir {

/// The arithmetic of an atomic or a reduction: new = operation(old, value).
Op operation(AtomicOp op, Type type);
/// The unsigned integer of the same width: what compare-and-swap compares.
Type bits_type(Type type);
/// The value an atomic leaves, from the old one and its operands (cas: expected, desired; compared
/// by bits). Not for `load`.
Value* updated(Builder& b, AtomicOp op, Value* old, std::span<Value* const> values);

/// Does the order of such updates show in the last places?
bool rounds(AtomicOp op, Type type);
/// The atomics of a loop's iterations that rule 10 of docs/semantics.md lets be combined with each
/// other before they are with the location, those that may touch one location together: operations
/// with an identity, whose results nobody uses and which `qualifies` finds good, float sums and
/// products not in strict mode. Whatever else may touch these locations is such an atomic too, on
/// one component all of one operation, and through several bindings all of one operation and type.
std::vector<std::vector<Inst*>> combinable_atomics(
    const Kernel& kernel, Region* iteration, const std::function<bool(const Inst*)>& qualifies);

}  // namespace quern::ir
