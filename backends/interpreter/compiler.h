#pragma once
#include "quern/runtime/compiler.h"

namespace quern::interpreter {

/// The code of an image is the text of the kernel, which the driver parses.
const runtime::Compiler& compiler();

}  // namespace quern::interpreter
