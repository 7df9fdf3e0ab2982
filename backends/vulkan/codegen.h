#pragma once
// A lowered task as a SPIR-V 1.6 module. Memory is reached through 64-bit addresses (physical
// storage buffers), control flow keeps the structure of the IR.
#include <string_view>
#include <vector>

#include "quern/ir/ir.h"

namespace quern::vulkan {

/// Invocations in a workgroup of a range task; a serial task runs one.
inline constexpr uint32_t group_size = 64;

/// What every task is launched with.
struct PushConstants {
  uint64_t args, guard, iterations, grain, chunks;
};

/// What a device has beyond what Quern requires of each. Written into Target::isa, which is all
/// that the compiler sees of a device.
struct Abilities {
  bool int64_atomics = false;
  bool f32_atomic_add = false;
  bool keep_nan = false;     ///< SignedZeroInfNanPreserve can be asked for in 32 and 64 bits
  bool round_even = false;   ///< RoundingModeRTE likewise
  bool keep_denorm = false;  ///< DenormPreserve likewise

  std::string text() const;
  static Abilities parse(std::string_view isa);
};

/// The module of a task. Throws Error where the device lacks what the task needs, InternalError for
/// an operation that lowering should have replaced.
std::vector<uint32_t> generate(const ir::Kernel& kernel, const ir::Task& task,
                               const Abilities& abilities);

}  // namespace quern::vulkan
