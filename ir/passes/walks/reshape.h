#pragma once
// Changes to the lists an instruction owns, for passes that move values between slots, results and
// carried values.
#include "quern/ir/builder.h"

namespace quern::ir {

/// Appends operands, all at once.
void add_operands(Builder& b, Inst* inst, std::span<Value* const> values);
/// Appends results, all at once. Pointers to the old results are no longer good; their uses move.
void add_results(Arena& arena, Inst* inst, std::span<const Type> types);
/// Appends arguments, all at once; as add_results.
void add_args(Arena& arena, Region* region, std::span<const Type> types);

/// Keep the entries whose flag is set; the others must be unused. Pointers to entries that stay
/// are no longer good; their uses move.
void keep_operands(Builder& b, Inst* inst, const std::vector<bool>& keep);
void keep_results(Arena& arena, Inst* inst, const std::vector<bool>& keep);
void keep_args(Arena& arena, Region* region, const std::vector<bool>& keep);

}  // namespace quern::ir
