#pragma once
#include <atomic>
#include <optional>

#include "backends/interpreter/code.h"
#include "backends/interpreter/interpreter.h"
#include "backends/interpreter/races.h"
#include "backends/interpreter/reductions.h"

namespace quern::interpreter {

/// Thrown when Options::max_steps are used up.
struct OutOfSteps {};
/// Thrown by a body that is to stop because a check has failed: no further task starts.
struct Stopped {};

/// What the threads of one launch share.
struct Launch {
  Launch(const Code& code, const Options& options);
  /// Forgets the launch before.
  void begin(std::byte* arguments, Report* into);

  const Code& code;
  const ir::Kernel& kernel;
  const Options& options;
  bool limited = false, checks_values = false, checked = false;
  bool polls = false;  ///< lowered loops ask for the error record themselves

  Report* report = nullptr;
  std::byte* args = nullptr;
  uint64_t steps_left = 0;
  uint32_t task = 0;          ///< the one that runs
  uint32_t serial_calls = 0;  ///< of `random` in serial code
  struct Reducing {
    uint64_t key;  ///< place of the slot, or index of the reduction
    Contributions contributions;
  };
  std::vector<Reducing> reducing;
  Races races;

  std::atomic_ref<uint32_t> state() const;
  /// Has a check failed, or the host asked the launch to end?
  bool failed() const { return state().load() != 0; }
  /// Has the host asked the launch to end? It ends here, if it does nowhere else.
  bool stops(Loc loc) const;
  /// A task of several chunks or threads runs to its end when one of them has failed.
  bool may_start(const ir::Task& of) const;
  ir::Bits cell_address(uint64_t cell) const;
};

}  // namespace quern::interpreter
