#pragma once
// Executes launches of a loaded module: blocks of warps of 32 threads, in lockstep while they stay
// together. What the PTX ISA manual leaves undefined ends a launch with a Fault.
#include <array>
#include <random>

#include "tests/gpu/ptx/code.h"

namespace quern::ptx {

/// What ends a launch, and the device with it; `code` is CUDA's number.
struct Fault : std::runtime_error {
  enum : int {
    illegal_address = 700,
    timeout = 702,
    misaligned = 716,
    invalid_instruction = 715,
    launch_failed = 719
  };
  Fault(int number, const std::string& what) : std::runtime_error(what), code(number) {}
  int code;
};

/// The memory that kernels and other devices reach.
class GlobalMemory {
 public:
  /// Addresses in a row that one device may use, and where they lie on the host.
  struct Range {
    uint64_t begin = 0, end = 0;
    std::byte* host = nullptr;
  };
  virtual ~GlobalMemory() = default;
  /// The allocation that an address lies in; empty where there is none.
  virtual Range range_of(uint64_t address) = 0;
};

struct Shape {
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters = {};  ///< Code::parameter_bytes of them
  uint64_t threads_of_block() const { return uint64_t(block[0]) * block[1] * block[2]; }
  uint64_t blocks() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
};

/// In what order things happen that have none.
struct Schedule {
  enum Order : uint8_t { ascending, descending, shuffled };
  Order blocks = ascending, warps = ascending;
  unsigned resident = 1;  ///< blocks that run at the same time
  bool switches = false;  ///< warps, and parts of a warp, take turns at random points
  uint64_t seed = 1;
  bool watched = false;              ///< a race between threads is a Fault (watch.h)
  uint64_t most_steps = 1ull << 40;  ///< instructions of warps; a launch of more is a Fault
};

/// What a launch did, by warp instruction.
struct Counts {
  uint64_t instructions[class_count] = {}, lanes[class_count] = {};
  uint64_t requests = 0, sectors = 0, ideal_sectors = 0;  ///< of global memory; 32 bytes each
  /// Each pass is a word of 4 bytes for each bank; more than the words would fill: conflicts.
  uint64_t shared_requests = 0, shared_passes = 0, ideal_shared_passes = 0;
  uint64_t barriers = 0;  ///< of blocks
  uint64_t atomics = 0,
           colliding_atomics = 0;  ///< lanes; those that found another at their address
};

/// Throws Fault. `counts` may be null.
void run(const Image& image, const Code& code, const Shape& shape, GlobalMemory& memory,
         const Schedule& schedule, Counts* counts);

}  // namespace quern::ptx
