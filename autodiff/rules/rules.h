#pragma once
// Functions whose derivative is given by a rule.
//
// A rule is a function itself, or two: pushforward and pullback (ir::Function). Those of the
// library are written in the language, over its matrices (rules/*.cpp), and recorded when a kernel
// that applies the function is differentiated; users give theirs with the function. Either way they
// are functions of the kernel then, and what differentiates it copies their code to where the
// function was applied: it is ordinary code, which has derivatives itself.
#include <span>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::autodiff {

enum class Direction : uint8_t { forward, back };

/// Gives the functions that the kernel's body applies the library's rules, in that direction. A
/// function whose rule the library does not know either stays without.
void add_rules(ir::Kernel& kernel, Direction direction);

/// The rule of what `inst` applies; null: it has none.
const ir::Function* rule_of(const ir::Kernel& kernel, const ir::Inst* inst, Direction direction);

/// Builds the rule's code at the builder's point, at its location: what the rule gives of these
/// values. Functions that it applies are those of its kernel.
std::vector<ir::Value*> build_rule(ir::Builder& b, const ir::Function& rule,
                                   std::span<ir::Value* const> values);

}  // namespace quern::autodiff
