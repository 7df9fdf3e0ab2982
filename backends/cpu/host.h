#pragma once
#include "quern/runtime/backend.h"

namespace quern::cpu {

/// The CPU this process runs on. Its isa is the architecture and, on x86-64, "+name" for each
/// extension that code may use, by LLVM's names; elsewhere what /proc/cpuinfo says of the CPU.
runtime::Target host_target();

/// Does code made for `code` run on `machine`?
bool runs_on(const std::string& code, const std::string& machine);

}  // namespace quern::cpu
