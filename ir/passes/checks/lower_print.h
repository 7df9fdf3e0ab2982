#pragma once
// `print` takes the next entry of the print ring and fills it in; past the capacity it only counts.
//
// Expects: open_tasks has run.
// Guarantees: no `print`. Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void lower_print(Kernel& kernel);
}
