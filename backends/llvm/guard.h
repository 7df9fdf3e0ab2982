#pragma once
#include <functional>
#include <string>

namespace quern::codegen {

/// Runs `work`, which calls LLVM. A fatal error or a crash inside LLVM ends `work` and becomes an
/// InternalError that names `what` and holds LLVM's text; what `work` had allocated is lost then,
/// so `work` must not hold a lock. Exceptions of `work` pass through. Any thread, not nested.
void guarded(const std::string& what, const std::function<void()>& work);

}  // namespace quern::codegen
