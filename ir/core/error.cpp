#include "quern/error.h"

#include <mutex>
#include <unordered_set>

namespace quern {

namespace {
std::string with_place(Loc loc, const std::string& message) {
  if (loc.line == 0) return message;
  return std::string(loc.file) + ":" + std::to_string(loc.line) + ": " + message;
}
}  // namespace

Error::Error(Loc loc, const std::string& message)
    : std::runtime_error(with_place(loc, message)), loc_(loc), message_(message) {}
Error::Error(const std::string& message) : Error(Loc{}, message) {}

InternalError::InternalError(const std::string& message)
    : std::logic_error("quern: internal error: " + message +
                       "\n(this is a defect of Quern, not of your program: please report it)") {}

const char* intern(const std::string& text) {
  static std::mutex mutex;
  static std::unordered_set<std::string> texts;
  std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}

}  // namespace quern
