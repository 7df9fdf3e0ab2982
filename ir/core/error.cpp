#include "quern/error.h"

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_set>

namespace quern {

namespace detail {

struct SharedText::Shared {
  std::string text;
  std::atomic<int> owners{1};
};

SharedText::SharedText(const std::string& text) : shared_(new Shared{text}) {}
SharedText::SharedText(const SharedText& other) noexcept : shared_(other.shared_) {
  shared_->owners++;
}
SharedText& SharedText::operator=(const SharedText& other) noexcept {
  SharedText copy(other);
  std::swap(shared_, copy.shared_);
  return *this;
}
SharedText::~SharedText() {
  if (--shared_->owners == 0) delete shared_;
}
const std::string& SharedText::operator*() const noexcept { return shared_->text; }

}  // namespace detail

namespace {
std::string with_place(Loc loc, const std::string& message) {
  if (loc.line == 0) return message;
  return std::string(loc.file) + ":" + std::to_string(loc.line) + ": " + message;
}
}  // namespace

Error::Error(Loc loc, const std::string& message)
    : loc_(loc), message_(message), what_(with_place(loc, message)) {}
Error::Error(const std::string& message) : Error(Loc{}, message) {}
const char* Error::what() const noexcept { return (*what_).c_str(); }

InternalError::InternalError(const std::string& message)
    : what_("quern: internal error: " + message +
            "\n(this is a defect of Quern, not of your program: please report "
            "it)") {}
const char* InternalError::what() const noexcept { return (*what_).c_str(); }

const char* intern(const std::string& text) {
  static std::mutex mutex;
  static std::unordered_set<std::string> texts;
  std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}

}  // namespace quern
