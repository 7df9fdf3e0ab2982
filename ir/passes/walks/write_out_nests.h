#pragma once
// Writes out small nests of loops whose inner loops have as many rounds as the outer one's index
// says: what goes through a triangle of a small matrix.
//
// Of such loops each has another number of rounds, few of them, so that all that is done around the
// rounds takes more time than these do: that of an address, and of a loop over a strip where a
// walk's iterations are taken through them together (interleave_walks.h). Written out, addresses
// and bounds are constants, and what several rounds read is read once.
//
// Expects: level lowered, simplified.
// Guarantees: in a loop within a parallel_walk, a loop of at most 16 constant rounds, in which the
// bounds of a loop follow from its index, is replaced by the code of its rounds, those of loops
// inside it too, as long as all that is written out in a walk is at most 4,000 instructions and,
// with those that become constants, 12,000. One that stands directly in the walk stays: without a
// loop no iterations would be taken together. Nothing changes where target.strip is 0. Linear in
// the code that it makes.
#include "quern/ir/lower.h"

namespace quern::ir {
void write_out_nests(Kernel& kernel, const TargetTraits& target);
}
