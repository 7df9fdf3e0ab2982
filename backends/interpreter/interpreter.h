#pragma once
// The oracle: runs a kernel as docs/semantics.md says, one thread after another. Element tasks run
// in blocks of threads: each thread until it ends or waits for its block, and where all of them
// wait, on from there. An Error with the user's line says where only some reach such a place.
//
// Runs any level and every stage between two passes: a body with parallel loops (recorded or
// structured), or tasks and a schedule (split, lowered, and whatever lies between). Addresses are
// host pointers; bindings are resolved through the argument block of quern/ir/abi.h.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "quern/ir/abi.h"
#include "quern/ir/ir.h"

namespace quern::interpreter {

struct Options {
  uint64_t seed = 0;           ///< 0: iterations in their natural order; else a permutation of them
  uint64_t grain = 7;          ///< iterations per chunk of a chunked task that leaves the choice
  uint32_t blocks = 2;         ///< of an element task that leaves the choice
  uint32_t block_threads = 2;  ///< of each
  uint64_t max_steps = 0;      ///< instructions after which a run gives up; 0: never
  bool check_bounds = false;   ///< field and array indices out of range, in every mode
  bool check_races = false;    ///< conflicting accesses of iterations of one task; not lowered
  bool check_overflow = false;  ///< signed integers that wrap, conversions that saturate, ÷ 0
  bool check_nan = false;       ///< a NaN from operands that are none
};

/// Something that a check of Options saw.
struct Finding {
  enum Kind : uint8_t { bounds, race, overflow, nan };
  Kind kind = bounds;
  Loc loc;
  Loc other;  ///< race: the access before
  std::string message;
};

struct Report {
  std::vector<Finding> findings;  ///< the first hundred
  std::vector<ir::Bits> results;
  ir::abi::ErrorRecord error;
  uint32_t printed = 0;                     ///< lines, those that were lost included
  std::vector<ir::abi::PrintEntry> prints;  ///< lines kept
  bool ended = true;                        ///< false: gave up after max_steps
  uint64_t steps = 0;                       ///< instructions run, counted where max_steps is given
};

/// Runs a whole kernel. `passed` is its argument block up to the buffers (abi::passed_bytes); of the
/// head only seed and launch number are the caller's: frame, buffers, error record and print ring
/// are made for the run and end up in the report.
void run(const ir::Kernel& kernel, const std::byte* passed, const Options& options, Report& report);

/// A kernel at level `split`, its tasks not walked, made ready to run task by task.
class Tasks {
 public:
  explicit Tasks(const ir::Kernel& kernel);
  ~Tasks();
  /// One task; the argument block is complete, error record and print ring included. Calls for one
  /// argument block come in the order of the schedule.
  void run(uint32_t task, std::byte* args);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::interpreter
