#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace quern::rocm {

/// The code object that HIP loads, from LLVM's relocatable object. `name` is for messages. Throws
/// Error where temporary files cannot be written, InternalError where lld refuses the object. Any
/// thread; lld serves one at a time.
std::vector<std::byte> link(std::span<const std::byte> object, const std::string& name);

}  // namespace quern::rocm
