#pragma once
// Launches that are recorded, and gone back through.
#include <atomic>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "autodiff/reverse/reverse.h"
#include "autodiff/tapes/passed_companions.h"
#include "quern/runtime/biased_mutex.h"
#include "quern/runtime/program.h"
#include "quern/runtime/stream.h"

namespace quern::autodiff {

/// The reverse kernels of one kernel, each made when a launch with its premises is recorded. May be
/// used from several threads.
class Reversed {
 public:
  enum Kind : uint8_t {
    adjoints,
    with_values,  ///< where Reverse::yields_values, the primal's results stand first
    second,  ///< the reverse kernels run forward themselves, and yield what their results change by
             ///< along a direction, too
  };
  /// `inputs`: as reverse() takes them.
  Reversed(std::shared_ptr<const ir::Kernel> primal, std::vector<bool> inputs, Kind kind = adjoints)
      : primal_(std::move(primal)), inputs_(std::move(inputs)), kind_(kind) {}

  struct Program {
    Reverse reverse;      ///< whose kernels the programs have
    bool second = false;  ///< those of `program` and `log_record` run forward
    /// Of `log_record` then: the bindings whose tangents are passed behind all else.
    std::vector<uint32_t> log_tangents;
    std::unique_ptr<runtime::Program> program, count;
    std::unique_ptr<runtime::Program> log_sizes, log_count, log_record;
    bool counts_by_data = false;  ///< Does how many rows there are depend on elements of fields?
    /// What is launched in place of the primal, and says before how much that keeps; null: the primal
    /// itself is launched.
    std::unique_ptr<runtime::Program> augmented, augmented_count;
    bool augmented_by_data = false;      ///< counts_by_data, of augmented_count
    std::vector<uint32_t> augmented_by;  ///< scalars of the primal that decide on what it says
    /// Of what is launched in place of the primal, if that computes the gradient at once.
    std::optional<PassedCompanions> passed_at_once;
    /// Of a `program` that takes nothing but what is known when the launch is recorded: companions
    /// are passed to it, by their fields' numbers among those of Reverse::fields that are some.
    std::optional<PassedCompanions> passed;

    /// How one augments that keeps less.
    Augment less_augmented() const {
      return reverse.augmented.at_once ? Augment::by_loops : Augment::never;
    }

    /// What the augmented primal keeps in a launch: results of augmented_count, bytes, and whether
    /// that is worth it.
    struct Kept {
      std::vector<uint64_t> counts;
      uint64_t bytes = 0;
      bool pays = true;
    };
    /// By a launch with these arguments. Known from one before, of any tape, where the same decides on
    /// it as in one of the last few. May be used from several threads.
    Kept kept_with(std::span<const runtime::Argument> arguments, Loc loc);

   private:
    using KeptBy = std::pair<std::vector<uint64_t>, Kept>;  ///< bits of scalars, axes of fields
    std::mutex kept_mutex_;
    std::vector<KeptBy> kept_;  ///< the newest last
  };
  /// `augment`: unless never, something else may be launched in place of the primal. Throws Error with the
  /// line of what has no adjoint.
  std::shared_ptr<Program> program(const runtime::LaunchKey& key, Augment augment);

 private:
  const std::shared_ptr<const ir::Kernel> primal_;
  const std::vector<bool> inputs_;
  const Kind kind_;
  std::mutex mutex_;
  struct Known {
    ir::Premises premises;
    std::vector<runtime::LaunchKey::OnTree> trees;
    Augment augment = Augment::never;
    std::shared_ptr<Program> program;
  };
  std::vector<Known> programs_;
};

/// What goes back through one program's kernel, by its inputs: kept with the program
/// (runtime::Attached), where who asks for the same finds it made. May be used from several
/// threads.
class ReversedByInputs {
 public:
  static std::shared_ptr<ReversedByInputs> of(runtime::Attached& program);
  /// `kernel`: the program's.
  std::shared_ptr<Reversed> by(const std::shared_ptr<const ir::Kernel>& kernel,
                               const std::vector<bool>& inputs,
                               Reversed::Kind kind = Reversed::adjoints);
  /// For launches that pass the companions too that the kernel derives, by these arguments of
  /// theirs.
  std::shared_ptr<Reversed> by_passed(const std::shared_ptr<const ir::Kernel>& kernel,
                                      const std::vector<bool>& inputs);

 private:
  std::shared_ptr<Reversed> find(const std::shared_ptr<const ir::Kernel>& kernel,
                                 const std::vector<bool>& inputs, Reversed::Kind kind);
  struct Known {
    const ir::Kernel* kernel = nullptr;
    std::vector<bool> inputs;
    Reversed::Kind kind = Reversed::adjoints;
    std::shared_ptr<Reversed> reversed;
  };
  std::mutex mutex_;
  std::vector<Known> all_;
  std::shared_ptr<const ir::Kernel> passed_;  ///< takes companions as arguments
};

/// What launches that follow each other have in common: contents of fields that nobody has written
/// in between, companions, and what a kernel that is launched with the same fields again passes to
/// its reverse kernel.
class SeenFields {
 public:
  struct Field {
    std::shared_ptr<runtime::Storage> storage;  ///< kept, so that the key names no other
    /// A snapshot of it, which shows what it held before a launch while that is gone back through.
    std::shared_ptr<runtime::Storage> before;
    runtime::Storage::Contents nothing;   ///< shown where what it did takes memory of its own
    runtime::Storage::Contents contents;  ///< when it was asked for last
    /// Of a small field, those of its memory with that number.
    runtime::Storage::Versions* versions = nullptr;
    uint64_t versions_of = 0;
    std::vector<std::pair<std::string, std::shared_ptr<runtime::Storage>>> companions;

    /// Does the snapshot lie as the field does? One that has grown since is taken anew.
    bool is_of_now() const;
  };
  /// Of all launches of one kernel with the same fields.
  struct Passed {
    std::shared_ptr<Reversed::Program> program;
    runtime::BiasedMutex mutex;  ///< held by who goes back
    std::vector<runtime::Argument> of_primal;
    /// Those of the primal; all that the reverse kernel takes where that is known before, seeds as
    /// zeros. Snapshots and scalars are those of the launch that is gone back through.
    std::vector<runtime::Argument> arguments;
    const runtime::FixedArguments fixed = runtime::new_fixed_arguments();  ///< those
    std::vector<runtime::Argument> fields;  ///< Reverse::fields that are some
    struct Snapshot {
      std::shared_ptr<Field> of;
      std::shared_ptr<runtime::Storage> storage;  ///< among the arguments
    };
    std::vector<Snapshot> snapshots;
    std::vector<uint32_t> scalars;      ///< of the primal
    runtime::Device* device = nullptr;  ///< of the primal's fields; null: it has none
    bool takes_trees = false;           ///< Is one of them on a tree?
    std::vector<std::shared_ptr<runtime::Storage>> on_trees;  ///< whose adjoints are too
    struct Held {
      std::shared_ptr<runtime::Storage> storage;
      uint64_t memory = 0;  ///< that it had, by its number
    };
    std::vector<Held>
        held;  ///< the adjoints of each of `fields`, and fields that are passed themselves
    /// Storage::moves when `fields` were there and what is held had this memory.
    mutable std::atomic<uint64_t> known_at = 0;

    bool is_for(const Reversed::Program& program, std::span<const runtime::Argument> given) const;
    /// The rest of what that asks, where fields are the same and on no tree.
    bool holds_same_memory() const;
    std::span<const runtime::Argument> primal() const;
    size_t first_seed() const;  ///< among the arguments, where all are known before
  };

  enum Kept {
    once,     ///< contents share their fields' memory
    by_tape,  ///< of small fields they are copied, which many versions of them make cheaper
  };
  explicit SeenFields(Kept kept = once) : kept_(kept) {}

  std::shared_ptr<Passed> passed(const std::shared_ptr<Reversed::Program>& program,
                                 std::span<const runtime::Argument> arguments, Loc loc);
  /// Of a field that was passed. Those of small fields are there as long as this is.
  const runtime::Storage::Contents& now(Field& field, Loc loc);
  /// Nothing is recorded any more.
  void end() {
    all_.clear();
    passed_.clear();
  }

 private:
  const std::shared_ptr<Field>& of(const std::shared_ptr<runtime::Storage>& field, Loc loc);
  const std::shared_ptr<runtime::Storage>& companion(const std::shared_ptr<runtime::Storage>& field,
                                                     const std::string& name, Loc loc);
  std::shared_ptr<Passed> pass(const std::shared_ptr<Reversed::Program>& program,
                               std::span<const runtime::Argument> arguments, Loc loc);
  Kept kept_;
  std::unordered_map<const runtime::Storage*, std::shared_ptr<Field>> all_;
  std::unordered_map<uint64_t, runtime::Storage::Versions> small_;  ///< by the memory's number
  /// The last few of each kernel, the newest first.
  std::unordered_map<const Reversed::Program*, std::vector<std::shared_ptr<Passed>>> passed_;
};

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
  Recorded(std::shared_ptr<SeenFields::Passed> passed, std::span<const runtime::Argument> arguments,
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
  std::span<const SeenFields::Passed::Snapshot> snapshots() const { return passed_->snapshots; }
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
  uint64_t copied_bytes() const;
  void pass_at_once(Arguments& all, Loc loc);
  void add_log(Arguments& all, std::span<const uint64_t> along,
               const std::shared_ptr<runtime::Device>& device, Loc loc) const;
  void add_tangents(Arguments& own, std::span<const uint64_t> along,
                    runtime::Storage::Copies& copies, Loc loc) const;
  void add_rows(Arguments& all, const Arguments& read,
                const std::shared_ptr<runtime::Device>& device, Loc loc) const;

  std::shared_ptr<SeenFields::Passed> passed_;             ///< also of other launches
  std::pmr::vector<runtime::Storage::Contents> contents_;  ///< of each of its snapshots
  std::pmr::vector<uint64_t> scalars_;                     ///< the bits of each of its scalars
  std::vector<runtime::Argument> kept_;                    ///< by the augmented primal
  std::vector<uint64_t> tree_moves_;                       ///< of each of Passed::on_trees
  runtime::RandomKey key_;
  uint64_t failures_ = 0;  ///< of its device before it
  bool was_launched_ = false;
  Loc loc_;
};

}  // namespace quern::autodiff
