#pragma once
#include <exception>
#include <string>

namespace quern::test {

/// What `f` throws says; "" where it throws nothing.
template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace quern::test
