#pragma once
// Applies the facts of a launch.
//
// Expects: level split; the signature has an entry for each binding but the frame.
// Guarantees: modes are the signature's; each field knows whether its innermost stride is one
// element, and its alias class: the signature's plus one (0 is reserved for "may be any field").
// Linear in bindings.
#include "quern/ir/lower.h"

namespace quern::ir {
void bind(Kernel& kernel, const Signature& signature);
}
