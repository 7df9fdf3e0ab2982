#pragma once
// The part of legalise that deals with atomics; see there.
#include "quern/ir/lower.h"

namespace quern::ir {
void legalise_atomics(Kernel& kernel, const TargetTraits& target);
}
