#pragma once
// What the device that executes PTX is, by environment variables.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/gpu/ptx/machine.h"
#include "tests/gpu/recording/recording.h"

namespace quern::recording {

/// QUERN_PTX_DEVICES, _CAPABILITY (80 is 8.0), _MULTIPROCESSORS, _DRIVER (12040 is 12.4): what is
/// present. _SCHEDULE: ascending, descending or shuffled blocks and warps, with "+switches" for
/// turns that end at random points and streams that run on at random calls; _SEED: of what is
/// random. _RACES=1: a race between threads is an error. Throws std::runtime_error with the
/// variable's name.
inline void read_environment(Session& s, ptx::Schedule& schedule) {
  auto text = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  auto number = [&](const char* name, int least, int most, int otherwise) {
    const std::string value = text(name);
    if (value.empty()) return otherwise;
    char* end = nullptr;
    const long n = std::strtol(value.c_str(), &end, 10);
    if (*end || n < least || n > most)
      throw std::runtime_error(std::string(name) + " is '" + value + "'; allowed are " +
                               std::to_string(least) + " to " + std::to_string(most));
    return int(n);
  };
  s.name = "an interpreter of PTX, no hardware";
  s.devices = number("QUERN_PTX_DEVICES", 0, 8, s.devices);
  s.capability = number("QUERN_PTX_CAPABILITY", 50, 129, s.capability);
  s.multiprocessors = number("QUERN_PTX_MULTIPROCESSORS", 1, 1000, s.multiprocessors);
  s.version = number("QUERN_PTX_DRIVER", 10000, 99990, s.version);
  schedule.watched = number("QUERN_PTX_RACES", 0, 1, 0) == 1;
  schedule.seed = uint64_t(number("QUERN_PTX_SEED", 0, INT32_MAX, 1));
  std::string order = text("QUERN_PTX_SCHEDULE");
  const std::string suffix = "+switches";
  if (order.ends_with(suffix)) {
    schedule.switches = true;
    order.resize(order.size() - suffix.size());
  }
  using ptx::Schedule;
  if (order == "descending")
    schedule.blocks = schedule.warps = Schedule::descending;
  else if (order == "shuffled")
    schedule.blocks = schedule.warps = Schedule::shuffled;
  else if (!order.empty() && order != "ascending")
    throw std::runtime_error("QUERN_PTX_SCHEDULE is '" + text("QUERN_PTX_SCHEDULE") +
                             "'; allowed are ascending, descending and shuffled, with +switches");
}

}  // namespace quern::recording
