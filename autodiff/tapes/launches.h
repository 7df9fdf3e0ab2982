#pragma once
// Launches that are recorded, and gone back through.
#include <memory_resource>

#include "autodiff/tapes/passed.h"
#include "quern/runtime/stream.h"

namespace quern::autodiff {

/// The field's adjoints become 0; on a tree no element becomes active.
void clear_adjoints_of(runtime::Storage& field, Loc loc);

/// Has the cache fetch what lies there.
void prefetch(const void* first, size_t bytes);

/// One launch, as it was before it ran: fields whose values going back wants are snapshots, unless
/// nothing writes them in between.
class Recorded {
 public:
  Recorded(const std::shared_ptr<Reversed::Program>& program,
           std::span<const runtime::Argument> arguments, SeenFields& seen, Loc loc)
      : Recorded(seen.passed(program, arguments, loc), arguments, seen, loc) {}
  /// `passed`: by `seen`, for launches with these fields. `memory`: what many launches that are gone
  /// back through in turn keep theirs in side by side.
  Recorded(std::shared_ptr<Passed> passed, std::span<const runtime::Argument> arguments,
           SeenFields& seen, Loc loc,
           std::pmr::memory_resource* memory = std::pmr::get_default_resource());
  /// Is the augmented primal launched in place of the primal?
  bool is_augmented() const { return program().augmented != nullptr; }
  /// What it has kept, in bytes.
  uint64_t kept_bytes() const;
  /// A launch of the augmented primal by this program, with these arguments.
  struct AugmentedLaunch {
    std::shared_ptr<Reversed::Program> by;
    std::vector<runtime::Argument> arguments;
    std::shared_ptr<runtime::Outcome> run(Loc loc) const;
  };
  /// Allocates what it keeps.
  AugmentedLaunch augmented_launch(std::span<const runtime::Argument> arguments, Loc loc);
  /// To be called on the thread that has launched, right behind it: going back draws its random
  /// numbers.
  void was_launched() {
    key_ = runtime::RandomKey::last();
    was_launched_ = true;
  }
  /// Throws Error where the host has been told since that a launch of the device failed: those
  /// behind it have done nothing.
  void expect_done(Loc loc) const;
  size_t seeds() const { return program().reverse.seeds; }
  /// Does going back yield what the launch would? Then there need not be one.
  bool yields_values() const { return program().reverse.yields_values; }
  /// The primal's scalars that are inputs.
  std::span<const uint32_t> scalars() const { return program().reverse.scalars; }
  /// What fields held before it, and of each the field.
  std::span<const runtime::Storage::Contents> contents() const { return contents_; }
  std::span<const Passed::Snapshot> snapshots() const { return passed_->snapshots; }
  /// Of every field that is an input they become 0, and their tangents with them, where going back does
  /// not overwrite them.
  void clear_adjoints(Loc loc) const;
  /// Launches the reverse kernel, with the random numbers of the launch if there was one. `along`:
  /// tangents of scalars(), where it runs forward. Null where no scalar has an adjoint. Throws
  /// Error where a field has been swapped or released since.
  std::shared_ptr<runtime::Outcome> go_back(std::span<const uint64_t> seeds, Loc loc,
                                            std::span<const uint64_t> along = {}) const;
  /// Has the cache fetch what go_back() begins with, which was written long ago.
  void prefetch() const;
  struct Working {
    uint64_t bytes = 0;    ///< at a time: of copies, the log and rows
    bool by_data = false;  ///< Would a launch with other elements take other ones?
  };
  /// What going back takes, found by doing what it does before it launches the reverse kernel.
  Working working(Loc loc) const;

 private:
  using Arguments = std::vector<runtime::Argument>;
  const Reversed::Program& program() const { return *passed_->program; }
  void expect_unchanged(Loc loc) const;
  class Shown;
  std::span<const runtime::Argument> primal() const { return passed_->primal(); }
  std::span<const runtime::Argument> fields() const { return passed_->fields; }
  std::span<const runtime::Argument> kept() const {
    return kept_ ? std::span(*kept_) : std::span<const runtime::Argument>();
  }
  uint64_t copied_bytes() const;
  void pass_at_once(Arguments& all, Loc loc);
  void add_log(Arguments& all, std::span<const uint64_t> along,
               const std::shared_ptr<runtime::Device>& device, Loc loc) const;
  void add_tangents(Arguments& own, std::span<const uint64_t> along,
                    runtime::Storage::Copies& copies, Loc loc) const;
  void add_rows(Arguments& all, const Arguments& read,
                const std::shared_ptr<runtime::Device>& device, Loc loc) const;

  std::shared_ptr<Passed> passed_;                         ///< also of other launches
  std::pmr::vector<runtime::Storage::Contents> contents_;  ///< of each of its snapshots
  std::pmr::vector<uint64_t> scalars_;                     ///< the bits of each of its scalars
  Passed::KeptFields kept_;                                ///< by the augmented primal
  std::vector<uint64_t> tree_moves_;                       ///< of each of Passed::on_trees
  runtime::RandomKey key_;
  uint64_t failures_ = 0;  ///< of its device before it
  bool was_launched_ = false;
  Loc loc_;
};

}  // namespace quern::autodiff
