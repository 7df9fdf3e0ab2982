#pragma once
// Lets the host end loops that are long, but none whose speed would suffer.
//
// Expects: level lowered, what rearranges walks has run.
// Guarantees: on a stoppable target these loops ask the error record in each round whether the host
// wants the launch to end, and end if so; the first to see it claims the record with its place:
// - a loop around another one of many or unknown rounds (it becomes a while_);
// - a loop of straight code that would be alone with a launch: in serial code in no other loop, or
//   counted in 64 bits. It is cut into pieces of 2^22 rounds, between which it asks, so that it is
//   vectorised as before; where its step is not a constant up to 256 it asks in each round.
// Other loops of straight code end by themselves (fewer than 2^32 short rounds) or with their chunk,
// which the runtime keeps short. while_ loops of the program have been taken care of (lower_checks).
// Linear, times the depth of loops.
#include "quern/ir/lower.h"

namespace quern::ir {
void poll_loops(Kernel& kernel, const TargetTraits& target);
}
