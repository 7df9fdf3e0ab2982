#pragma once
// What every block of docs/guide.md may use.
#include <cmath>

#include "tests/end_to_end/devices.h"

using namespace qn::lang;

#define expect(...) REQUIRE((__VA_ARGS__))

inline bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}
