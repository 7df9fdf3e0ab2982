#pragma once
#include "tests/gpu/ptx/module.h"

namespace quern::ptx {
/// Puts the statements of functions in the places of their calls. Parameters and results become local
/// variables. Throws Refused for a function that is not there, or calls itself.
void inline_calls(Module& module);
}  // namespace quern::ptx
