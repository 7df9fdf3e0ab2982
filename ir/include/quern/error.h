#pragma once
#include <exception>
// Declares std::string. <string> itself would cost a program more than all of Quern's headers.
#include <iosfwd>

#include "quern/loc.h"

namespace quern {
namespace detail {
/// What an exception says, shared by its copies: copying one cannot fail.
class SharedText {
 public:
  explicit SharedText(const std::string& text);
  SharedText(const SharedText& other) noexcept;
  SharedText& operator=(const SharedText& other) noexcept;
  ~SharedText();
  const std::string& operator*() const noexcept;

 private:
  struct Shared;
  Shared* shared_;
};
}  // namespace detail

/// Misuse by the program: names the user's file and line, what was found and what is allowed.
/// `what()` is "file:line: message" (without the prefix where no line is known).
class Error : public std::exception {
 public:
  Error(Loc loc, const std::string& message);
  explicit Error(const std::string& message);

  const char* what() const noexcept override;
  Loc loc() const { return loc_; }
  const std::string& message() const { return *message_; }

 private:
  Loc loc_;
  detail::SharedText message_, what_;
};

/// A broken invariant of Quern's own: never the user's fault; `what()` asks for a report.
class InternalError : public std::exception {
 public:
  explicit InternalError(const std::string& message);
  const char* what() const noexcept override;

 private:
  detail::SharedText what_;
};

/// Keeps `text` for the rest of the process: file names of parsed text outlive their source.
const char* intern(const std::string& text);

}  // namespace quern
