#pragma once
// What becomes of kernels on the stand-ins that only write launches down: nothing but a number.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/gpu/recording/memory.h"

namespace quern::recording {
namespace {

/// Running a launch adds 1 to the 32-bit word at its first argument (where that is memory of the
/// device), unless the word at its second, the guard, is 0. The driver's own kernel `copies` copies.
class Execution {
 public:
  static constexpr Address hidden = 0;                  ///< addresses are the host's
  static constexpr bool ends_misused_programs = false;  ///< tests look at what was misused
  struct Program {
    std::vector<Address> variables;
  };
  struct Piece {
    Address to = 0, from = 0;
    uint64_t words = 0;
  };
  struct Work {
    std::vector<Piece> pieces;  ///< of `copies`, a column of blocks for each
  };

  explicit Execution(Session&) {}

  static Program load(const std::string&, int, const Allocate&) { return {}; }
  static bool has(const Program&, const std::string& text, const char* function) {
    return text.find(function) != std::string::npos;
  }
  /// The code that the launch is refused with, or 0.
  static int prepare(Work& work, Launch& launch, const Program&, size_t first_bytes,
                     void** parameters) {
    if (launch.function == "copies") {
      auto* pieces = static_cast<const Piece*>(parameters[0]);
      work.pieces.assign(pieces, pieces + launch.grid[1]);
      return 0;
    }
    for (int k = 0; k < 5; k++) std::memcpy(&launch.words[k], parameters[k], 8);
    auto* first = static_cast<const std::byte*>(parameters[0]);
    launch.first.assign(first, first + first_bytes);
    return 0;
  }
  /// The code that ends the device, or 0.
  static int run(const Work& work, const Launch& launch, const Session&, int,
                 const RangeOf& memory) {
    for (const Piece& p : work.pieces) {
      const Range to = memory(p.to), from = memory(p.from);
      if (!to.host || !from.host || p.to + 4 * p.words > to.end || p.from + 4 * p.words > from.end)
        return 700;
      std::memcpy(to.host + (p.to - to.begin), from.host + (p.from - from.begin),
                  4 * std::min<size_t>(p.words, size_t(launch.grid[0]) * launch.block[0]));
    }
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
