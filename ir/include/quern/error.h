#pragma once
#include <stdexcept>
#include <string>

#include "quern/loc.h"

namespace quern {

/// Misuse by the program: names the user's file and line, what was found and what is allowed.
/// `what()` is "file:line: message" (without the prefix where no line is known).
class Error : public std::runtime_error {
 public:
  Error(Loc loc, const std::string& message);
  explicit Error(const std::string& message);

  Loc loc() const { return loc_; }
  const std::string& message() const { return message_; }

 private:
  Loc loc_;
  std::string message_;
};

/// A broken invariant of Quern's own: never the user's fault; `what()` asks for a report.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& message);
};

/// Keeps `text` for the rest of the process: file names of parsed text outlive their source.
const char* intern(const std::string& text);

}  // namespace quern
