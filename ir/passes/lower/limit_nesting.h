#pragma once
// Restructures what is nested deeper than the target's control flow may be.
//
// Expects: level lowered, no calls.
// Guarantees: no more than target.if_nesting ifs stand inside each other. One at the limit that
// holds others becomes a sequence: what stands between the inner ones goes under tests of whether it
// is reached, pure code runs unasked, and a loop with ifs inside is entered under its bound or its
// condition; a chain of else-ifs becomes as many ifs side by side. Throws Error at the line of a
// loop inside target.loop_nesting others.
// Linear in the size of the result, times the nesting depth.
#include "quern/ir/lower.h"

namespace quern::ir {
void limit_nesting(Kernel& kernel, const TargetTraits& target);
}
