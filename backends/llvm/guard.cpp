#include "backends/llvm/guard.h"

#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>

#include <exception>
#include <mutex>

#include "quern/error.h"

namespace quern::codegen {

namespace {
std::string& fatal_text() {
  thread_local std::string text;
  return text;
}

void on_fatal_error(void*, const char* reason, bool) {
  llvm::CrashRecoveryContext* context = llvm::CrashRecoveryContext::GetCurrent();
  if (!context) return;  // not below `guarded`: LLVM goes on to end the process
  fatal_text() = reason;
  context->HandleExit(1);
}

/// LLVM's signal handlers are in place only while some thread is inside LLVM.
class Handlers {
 public:
  Handlers() {
    static const bool installed = (llvm::install_fatal_error_handler(on_fatal_error), true);
    (void)installed;
    std::lock_guard lock(mutex());
    if (users()++ == 0) llvm::CrashRecoveryContext::Enable();
  }
  ~Handlers() {
    std::lock_guard lock(mutex());
    if (--users() == 0) llvm::CrashRecoveryContext::Disable();
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static int& users() {
    static int count = 0;
    return count;
  }
};
}  // namespace

void guarded(const std::string& what, const std::function<void()>& work) {
  std::exception_ptr thrown;
  bool survived;
  {
    Handlers handlers;
    fatal_text().clear();
    llvm::CrashRecoveryContext context;
    survived = context.RunSafely([&] {
      try {
        work();
      } catch (...) {
        thrown = std::current_exception();
      }
    });
  }
  if (!survived) {
    std::string text = fatal_text().empty() ? "it crashed" : fatal_text();
    throw InternalError("LLVM failed while " + what + ": " + text);
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace quern::codegen
