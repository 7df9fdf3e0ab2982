#pragma once
#include "tests/fuzz/engine/differential.h"

namespace quern::fuzz {

/// A smaller program that is sound and fails at the same stage, found by leaving things out for at
/// most `seconds`.
Program shrink(const Program& program, const Failure& failure, const Checks& checks,
               double seconds = 30);

/// The program as text that quern/ir/text.h parses: seed, stage and inputs stand in comments.
std::string text(const Program& program, const Failure& failure);

}  // namespace quern::fuzz
