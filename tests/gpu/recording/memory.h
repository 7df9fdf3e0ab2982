#pragma once
// How what becomes of kernels sees the memory of the stand-ins.
#include <functional>

#include "backends/gpu/api.h"
#include "tests/gpu/recording/recording.h"

namespace quern::recording {

using gpu::Address;

/// Addresses in a row that a device may use, and where they lie on the host; empty: none.
struct Range {
  Address begin = 0, end = 0;
  std::byte* host = nullptr;
};
/// The allocation that an address lies in, if the device reaches it.
using RangeOf = std::function<Range(Address)>;
/// Memory for a module's variable. Throws std::bad_alloc.
using Allocate = std::function<Range(size_t bytes)>;

}  // namespace quern::recording
