#pragma once
// Computes on halves (f16) in f32.
//
// Expects: level lowered, no atomic or reduction on f16.
// Guarantees: f16 is the type of constants, arguments, what is read, written and carried, selects
// and bitcasts only; every other row works on f32 between conversions, so that each result is
// rounded once. Of conversions those between f16 and f32 are left: from f64 through f32 rounded to
// odd. Where the target lacks them (half_conversions), no f16 is left at
// all: halves are kept as u16, and the conversions are functions of ir/math.
// Linear in the size of the result.
#include "quern/ir/lower.h"

namespace quern::ir {
void widen_halves(Kernel& kernel, const TargetTraits& target);
}
