#pragma once
// Digits of positions, as code.
#include <utility>

#include "quern/ir/builder.h"

namespace quern::ir {

/// Quotient and remainder of an unsigned value by a constant that is not 0.
std::pair<Value*, Value*> divide(Builder& b, Value* v, uint32_t by);

}  // namespace quern::ir
