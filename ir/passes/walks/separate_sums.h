#pragma once
// Sums that a walk carries through inner loops, from where an iteration begins.
//
// Iterations that are taken through their inner loops together (interleave_walks.h) each need a sum of
// their own there; what they add to the walk's sum is added behind the loop.
//
// Expects: level lowered, simplified.
// Guarantees: of a loop directly in a walk that begins with what the walk carries and only adds to it, in
// any order, through loops within it too, the sum begins with what adds nothing, and what the walk carries
// is added to the result behind the loop. Linear, times the depth of loops.
#include "quern/ir/lower.h"

namespace quern::ir {
void separate_sums(Kernel& kernel, const TargetTraits& target);
}
