#pragma once
// What becomes of kernels on the stand-ins that only write launches down: nothing but a number.
#include <cstring>

#include "tests/gpu/recording/memory.h"

namespace quern::recording {
namespace {

/// Running a launch adds 1 to the 32-bit word at its first argument (where that is memory of the
/// device), unless the word at its second, the guard, is 0.
class Execution {
 public:
  static constexpr Address hidden = 0;                  ///< addresses are the host's
  static constexpr bool ends_misused_programs = false;  ///< tests look at what was misused
  struct Program {
    std::vector<Address> variables;
  };
  struct Work {};

  explicit Execution(Session&) {}

  static Program load(const std::string&, int, const Allocate&) { return {}; }
  static bool has(const Program&, const std::string& text, const char* function) {
    return text.find(function) != std::string::npos;
  }
  /// The code that the launch is refused with, or 0.
  static int prepare(Work&, Launch& launch, const Program&, size_t first_bytes, void** parameters) {
    for (int k = 0; k < 5; k++) std::memcpy(&launch.words[k], parameters[k], 8);
    auto* first = static_cast<const std::byte*>(parameters[0]);
    launch.first.assign(first, first + first_bytes);
    return 0;
  }
  /// The code that ends the device, or 0.
  static int run(const Work&, const Launch& launch, const Session&, int, const RangeOf& memory) {
    auto word = [&](Address address) -> uint32_t* {
      const Range range = memory(address);
      if (!range.host || range.end - address < 4) return nullptr;
      return reinterpret_cast<uint32_t*>(range.host + (address - range.begin));
    };
    const Address guard = launch.words[1] & ~Address(1);  // the lowest bit says something else
    uint32_t* allows = guard ? word(guard) : nullptr;
    if (allows && *allows == 0) return 0;
    if (uint32_t* counter = word(launch.words[0])) ++*counter;
    return 0;
  }
  /// Streams go on by themselves in one of n calls?
  static bool takes_turn(int) { return false; }
  static const char* fault() { return ""; }
};

}  // namespace
}  // namespace quern::recording
