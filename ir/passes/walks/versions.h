#pragma once
// A loop that is there twice, for two answers to a question from before it.
#include "quern/ir/builder.h"

namespace quern::ir {

/// Makes `if condition: a copy of the loop, else: the loop`, with the results of whichever runs. In
/// the copy each of `known`, which are questions from before the loop, is `answer`.
void version(Kernel& kernel, Inst* loop, Value* condition, std::span<Value* const> known,
             bool answer);

}  // namespace quern::ir
