#pragma once
// Takes the borders off a walk: index-set splitting (Wolfe, High Performance Compilers, 1996, 9.2).
//
// A stencil asks at every element whether it stands at a border (`i > 0 && j > 0`), or wraps its
// index around (`(j + 1) % n`, `select(j == 0, n - 1, j - 1)`, `clamp`); only a few elements of a
// row do, and where none does its reads are neighbours, which a back end vectorises.
//
// Expects: level lowered, simplified, hoisted.
// Guarantees: where such questions decide what a parallel_walk loop reads or writes, it becomes
//
//   loop 0 .. 2 { the iterations before (after) the middle, as they were; the middle }
//
// in the order of the walk. The middle is the longest range around the walk's middle iteration in
// which every question has the answer that it has inside: comparisons of the index with values the
// walk shares (inside, an index is neither equal to such a value nor below a constant that is less
// than 16, and below everything else), remainders, masks, minima and maxima; comparisons that all
// iterations share are answered likewise. Its copy of the body holds the answers, and indices in 64
// bits without a conversion. Where the middle iteration answers otherwise, it is empty. Not in
// walks that may report errors or have more than 4,000 instructions, nor where target.strip is 0.
// Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void split_walks(Kernel& kernel, const TargetTraits& target);
}
