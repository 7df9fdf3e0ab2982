#pragma once
// Local arrays whose elements are all named by constants become a slot for each element, which
// promote_slots makes values of.
//
// Expects: level structured or later.
// Guarantees: a slot of several elements is left only where an access of it names its element by no
// constant, or by one that is out of range.
// Linear in instructions and elements.
#include "quern/ir/ir.h"

namespace quern::ir {
void split_arrays(Kernel& kernel);
}
