#pragma once
// From a vendor's error code to an exception.
#include "backends/gpu/api.h"
#include "quern/error.h"

namespace quern::gpu {

/// Codes after which every further call fails.
bool is_fatal(Code c);

/// The context of a device has ended, by a kernel's wrong address for example.
class DeviceLost : public Error {
 public:
  using Error::Error;
};

/// Throws Error where the user's program or machine is at fault (no memory, a driver that is too
/// old; DeviceLost), else InternalError; the text says what was tried and the vendor's name of the
/// error.
[[noreturn]] void fail(const Api& api, Code c, const std::string& what);
inline void expect(const Api& api, Code c, const char* what) {
  if (c != code::success) fail(api, c, what);
}

}  // namespace quern::gpu
