#pragma once
// The `partial` column of the operation table: first derivatives as IR.
#include "quern/ir/builder.h"

namespace quern::ir {

/// Will what is built be differentiated again? What is not takes fewer instructions.
enum class Further : bool { no, yes };

/// Builds t · ∂result/∂operand k of `op` at the builder's point, from its operands and its result;
/// null where the derivative is zero everywhere (integers, comparisons, rounding, bits). t has the
/// result's type, and so has the product: of a `convert` from another float type the caller
/// converts it to the operand's.
///
/// Where all operands are finite a zero t gives a zero (of either sign), also at poles and outside
/// of the function's domain. An operand not chosen gets a zero whatever it is. With Further::yes
/// the product varies with t also where t is zero.
///
/// Where a function has a kink the derivative is that of the operand chosen: min, max, fmin and
/// fmax give all of it to the operand whose value is the result (the first where both are equal),
/// abs follows the sign bit. pow has no derivative in its exponent where the result is 0, and none
/// in its base where the exponent is 0; hypot none at the origin. fmod and remainder vary with
/// their divisor by the integer quotient, which is constant almost everywhere. Poles and infinities
/// are in docs/semantics.md, "Derivatives".
Value* chain(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k, Value* t,
             Further further = Further::yes);

/// What `chain` has built, and 0 where t is zero, whatever the operands are: of an operation that
/// is `unasked`.
Value* zero_with(Builder& b, Value* t, Value* built, Further further);

/// The derivative itself: `chain` with t = 1.
Value* partial(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k);

/// Does `chain` multiply t by what takes a call of the math library, and by nothing else: sin, cos,
/// tanh, erf, erfc? Not of f16.
bool has_library_slope(Op op, Type type);
/// That factor, from the operand.
Value* library_slope(Builder& b, Op op, Value* x);

/// Is the derivative of an element-wise row zero everywhere?
bool is_flat(Op op);

}  // namespace quern::ir
