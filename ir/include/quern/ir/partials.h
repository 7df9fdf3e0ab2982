#pragma once
// The `partial` column of the operation table: first derivatives as IR.
#include "quern/ir/builder.h"

namespace quern::ir {

/// Builds ∂result/∂operand k of `op` at the builder's point, from its operands and its result; null
/// where it is zero everywhere (integers, comparisons, rounding, bits). Its type is the result's.
///
/// Where a function has a kink the derivative is that of the operand chosen: min, max, fmin and
/// fmax give all of it to the operand whose value is the result (the first where both are equal),
/// abs follows the sign bit. pow has no derivative in its exponent where the result is 0, and none
/// in its base where the exponent is 0; hypot none at the origin. fmod and remainder vary with
/// their divisor by the integer quotient, which is constant almost everywhere.
Value* partial(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k);

/// t · ∂result/∂operand k, t of the result's type; null where that is zero everywhere.
Value* chain(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k,
             Value* t);
/// Is the derivative of an element-wise row zero everywhere?
bool is_flat(Op op);

}  // namespace quern::ir
