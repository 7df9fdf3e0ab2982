#pragma once
// The element-wise rows of the operation table in LLVM IR.
#include <llvm/IR/IRBuilder.h>

#include <span>

#include "quern/ir/ir.h"

namespace quern::codegen {

/// b1 is i1, an integer iN of its width, an address a pointer into `global_space`.
llvm::Type* type_of(llvm::LLVMContext& context, ir::Type type, unsigned global_space);

/// A constant from its bits.
llvm::Value* constant_of(llvm::LLVMContext& context, ir::Type type, ir::Bits bits);

/// Emits an element-wise instruction whose operands are `args`, with the exact meaning of
/// docs/semantics.md: total, no undefined results. Null for a row that is not element-wise.
/// `by_vectors`: the code is in a loop that is to be vectorised by a machine that has no division
/// of vectors of integers; those of 32 bits are divided as f64 then, which is exact.
llvm::Value* emit_scalar(llvm::IRBuilderBase& b, const ir::Inst& inst,
                         std::span<llvm::Value* const> args, const ir::Modes& modes,
                         bool by_vectors = false);

/// What an atomic or a reduction makes of two values: one of add … bit_xor.
llvm::Value* emit_combine(llvm::IRBuilderBase& b, ir::AtomicOp op, ir::Type type, llvm::Value* old,
                          llvm::Value* value);

/// Metadata of a select between floats, for which of two zeros it may choose either.
inline constexpr char of_any_zero[] = "quern.of_any_zero";

/// A float as a signed integer that orders as fmin (`skip_high`) or fmax order floats: -0 below +0,
/// a NaN where the other operand always wins; and back.
llvm::Value* emit_key(llvm::IRBuilderBase& b, llvm::Value* v, bool skip_high);
llvm::Value* emit_unkey(llvm::IRBuilderBase& b, llvm::Value* key, llvm::Type* type);

}  // namespace quern::codegen
