#pragma once
// Replaces what the target lacks by IR.
//
// Expects: level lowered.
// Guarantees: no library function is left, unless the target has its own (native_math, not in
// strict mode). They are copied to where they are used; those of a task that holds many are called
// where the target has calls. fma, and ÷ and √ of f32, are functions of ir/math where they are not
// exact. Atomics: float compare-and-swap and exchange work on the bits; products, and float sums,
// minima and maxima that the target lacks, are compare-and-swap loops; 8- and 16-bit ones work on
// the 32-bit word that holds them where the target lacks them.
// Linear in the size of the result.
#include "quern/ir/lower.h"

namespace quern::ir {
void legalise(Kernel& kernel, const TargetTraits& target);
}
