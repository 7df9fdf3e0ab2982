#pragma once
// Canonical numbers, so that equal programs have equal text.
//
// Expects: level structured.
// Guarantees: sites are numbered in order of appearance (body first, then functions) and those that
// nothing names are gone; each parallel loop has its ordinal in program order, which names its
// random numbers at every later level.
// Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void number_sites(Kernel& kernel);
}
