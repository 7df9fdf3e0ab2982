#pragma once
// What tests of races in the primal have in common.
#include <quern/autodiff.h>

#include <string>

#include "tests/end_to_end/devices.h"
#include "tests/message_of.h"

namespace quern::test {

inline constexpr const char* own_values = "each a value of its own";
inline constexpr const char* which_stays = "Which value stays is not defined";
inline constexpr const char* which_first = "Which of them comes first is not defined";

/// On these devices: an interpreter of PTX ends at what races, whether that matters or not.
template <class F>
void where_races_are_let_be(F body) {
  for (const std::string& name : device_names()) {
    if (name != "interpreter" && name != "cpu") continue;
    qn::Device device(name.c_str());
    INFO("device " << name);
    body(device);
  }
  SUCCEED();
}

/// That both directions are made.
template <class... Arguments>
void accepted(const auto& kernel, Arguments... arguments) {
  CHECK(message_of([&] { qn::vjp(kernel)(arguments...)(); }) == "");
  if constexpr (sizeof...(arguments) == 0) CHECK(message_of([&] { qn::jvp(kernel)(); }) == "");
}

}  // namespace quern::test
