#pragma once
#include "quern/runtime/backend.h"

namespace quern::cpu {

/// The CPU this process runs on: its isa is "triple cpu features".
runtime::Target host_target();

}  // namespace quern::cpu
