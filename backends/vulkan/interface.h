#pragma once
// What code and the driver that launches it agree on.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/error.h"

namespace quern::vulkan {

/// Invocations in a workgroup: one for a serial task, else what the program asks for, else 64.
constexpr uint32_t group_size(bool is_serial, uint32_t block_size) {
  return is_serial ? 1 : block_size ? block_size : 64;
}

/// What every task is launched with.
struct PushConstants {
  uint64_t args, guard;                ///< with Launch::asks in abi::asks_bit of the guard
  uint64_t iterations, grain, chunks;  ///< runtime::words_of the launch's work
  uint64_t fault;                      ///< address of the word that takes a CutLoop
  uint64_t same_fault;                 ///< equal to it, which no compiler knows
  uint64_t id;                         ///< of the kernel, for CutLoop
};

/// Mesa's software driver ends every loop of an invocation once it has run 65,535 rounds, and says
/// nothing. Where Abilities::mesa_software is set, code behind each loop writes this word if the
/// loop would have gone on.
struct CutLoop {
  uint16_t loop = 0;  ///< 1 + place among Module::loops; 0: nothing was cut
  uint16_t task = 0;
  uint32_t id = 0;  ///< PushConstants::id
};

/// What a device has beyond what Quern requires of each, and what it does otherwise. Written into
/// Target::isa, which is all that the compiler sees of a device.
struct Abilities {
  bool int64_atomics = false;
  bool f32_atomic_add = false;
  bool keep_nan = false;       ///< SignedZeroInfNanPreserve can be asked for in 32 and 64 bits
  bool round_even = false;     ///< RoundingModeRTE likewise
  bool keep_denorm = false;    ///< DenormPreserve likewise
  bool flushes_f32 = false;    ///< found by rounding.h: see Arithmetic::mend_subnormals
  bool mesa_software = false;  ///< its faults are worked around: CutLoop, distrust

  std::string text() const;
  static Abilities parse(std::string_view isa);
};

/// Does a driver whose target has the second isa run code for the first? A driver makes no code, so
/// it has not asked its device how it rounds and whether it takes subnormal numbers for zeros: code
/// made for a device of the same abilities runs, and rounds as it was made to.
bool runs_on(const std::string& code, const std::string& machine);

/// The code of a task.
struct Module {
  std::vector<uint32_t> words;  ///< SPIR-V
  std::vector<Loc> loops;       ///< of the user's, see CutLoop
};
/// Image::code: a module for each task.
std::vector<std::byte> pack(std::vector<Module> modules);
/// Throws InternalError where the code is damaged.
std::vector<Module> unpack(std::span<const std::byte> code);

}  // namespace quern::vulkan
