#pragma once
// What steps in time carry from one to the next, told of the launches of their first run.
//
// A step that is run again finds the state that was kept, and else what is there: so what it reads
// must be part of the state, have been written by the step itself, or never be written by any
// step. Elements are told apart by boxes of indices (footprints.h); what is written elsewhere may
// be anywhere, and what is written under a condition may not have been. Of a tree it is one
// question for all fields on it, as what is written becomes active: a step that writes there and
// reads has ended all elements before.
#include <map>
#include <memory>
#include <vector>

#include "autodiff/tapes/footprints.h"
#include "quern/runtime/observer.h"

namespace quern::autodiff {

class Carried {
 public:
  explicit Carried(std::span<const std::shared_ptr<runtime::Storage>> state);
  void begin_step();
  /// Of a kernel or an algorithm. Throws Error with its line where a field is neither.
  void note(const runtime::LaunchEvent& event);
  /// Those that steps have read elements of which they never write. Throws Error with `loc` where
  /// one holds adjoints of another, which change as the tape goes back.
  std::vector<std::shared_ptr<runtime::Storage>> constants(Loc loc) const;

 private:
  using Boxes = std::vector<Box>;
  struct Memory {
    std::shared_ptr<runtime::Storage> field;                ///< the first that had it
    std::vector<std::shared_ptr<runtime::Storage>> others;  ///< on the same tree
    Boxes written;                                          ///< by any step
    bool is_written_anywhere = false;
    Boxes now;  ///< by this step, and each element
    bool is_whole_now = false;
    /// What steps had written themselves where they read: none writes anything else.
    std::vector<Boxes> read_behind;
  };
  /// A kernel as launches of one key run it.
  struct Known {
    std::shared_ptr<const ir::Kernel> recording;
    runtime::LaunchKey key;
    std::unique_ptr<ir::Kernel> kernel;
    std::vector<uint64_t> arguments;  ///< of the last launch
    std::vector<Footprint> found;     ///< with these
  };
  /// Null: a scalar, and what is of no account here. Throws Error for a field that was swapped
  /// since steps began.
  Memory* of(const runtime::LaunchEvent& event, size_t argument);
  const std::vector<Footprint>& footprints(const runtime::LaunchEvent& event);
  void note_algorithm(const runtime::LaunchEvent& event);
  void read(Memory& memory, const runtime::LaunchEvent& event, size_t argument, Loc at);
  void write(Memory& memory, const runtime::LaunchEvent& event, const Footprint& how);
  void write_anywhere(Memory& memory, const runtime::LaunchEvent& event, size_t argument, Loc at);
  static bool is_whole(const Memory& memory);

  std::vector<std::shared_ptr<runtime::Storage>> state_;
  std::map<std::pair<const void*, uint64_t>, Memory> memories_;  ///< by tree, or Storage::identity
  std::map<uint64_t, uint64_t> identities_;                      ///< by Storage::number
  std::vector<Known> known_;
};

}  // namespace quern::autodiff
