#pragma once
#include <string>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::ir {

/// Every broken rule of the kernel's level, each with the instruction's text; empty when sound.
/// Rules: types per the operation table; operands dominate uses and come from the same root;
/// regions end in one terminator, with the operand count and types their owner wants; slots are
/// used by slot operations only; bindings, components, axes, ranks, sites, callees, cells and tasks
/// exist; nothing of another level (exits above `structured`, bindings below `lowered`, addresses
/// above it); no parallel loop inside a loop or parallel loop below kernel level; use lists are
/// consistent.
std::vector<std::string> verify(const Kernel& kernel);

/// Throws InternalError naming `after` (a pass) when verify finds anything.
void expect_valid(const Kernel& kernel, std::string_view after);

}  // namespace quern::ir
