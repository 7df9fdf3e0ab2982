#include "backends/gpu/failure.h"

#include <algorithm>

namespace quern::gpu {

bool is_fatal(Code c) {
  // Uncorrectable memory or link, contained fault; the address, time-out, assertion, stack,
  // instruction, alignment, address space, program counter and launch failures of a kernel; shut
  // down; context destroyed; unknown.
  static constexpr Code all[] = {4,   214, 220, 226, 700, 702, 709, 710,
                                 714, 715, 716, 717, 718, 719, 999};
  return std::ranges::find(all, c) != std::end(all);
}

void fail(const Api& api, Code c, const std::string& what) {
  std::string text = api.vendor + ": " + what + " failed: " + api.error_text(c);
  if (is_fatal(c)) throw DeviceLost(text);
  switch (c) {
    case code::out_of_memory:
    case code::no_device:
    case code::out_of_resources: throw Error(text);
    case code::no_binary:
    case code::unsupported_text:
      throw Error(text + " (the device or its driver is older than what the code was made for)");
    default: throw InternalError(text);
  }
}

}  // namespace quern::gpu
