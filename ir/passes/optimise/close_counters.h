#pragma once
// Counts from the number of the round.
//
// A carried integer to which each round adds the same amount is an induction variable: it is what the
// loop began with and the round's number times that amount, and behind the loop the number of rounds
// times (Muchnick, Advanced Compiler Design and Implementation, 1997, section 14.1). So it is known
// without the rounds before, as walks taken together want it, and nothing keeps it for going back.
//
// Expects: level structured, slots promoted.
// Guarantees: carried integers of a `loop` by steps of 1 whose next value is a sum of the value, or a
// difference from it, and of what does not change in the loop, have no use left, nor have the loop's
// results of them; dead_code takes them away. Wrapping arithmetic makes that exact. Not where indices
// have fewer bits than what is counted and may begin below 0. Linear, times the depth of loops.
#include "quern/ir/ir.h"

namespace quern::ir {
void close_counters(Kernel& kernel);
}
