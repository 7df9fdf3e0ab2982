#pragma once
// What launches that are recorded pass to their reverse kernels.
#include <atomic>
#include <unordered_map>

#include "autodiff/tapes/reversed.h"
#include "quern/runtime/biased_mutex.h"

namespace quern::autodiff {

/// What all launches of one kernel with the same fields have in common. Made once, and taken up again
/// by the next tape (PassedBefore), but for views and fields on trees.
struct Passed {
  std::shared_ptr<Reversed::Program> program;
  runtime::BiasedMutex mutex;  ///< held by who goes back
  std::vector<runtime::Argument> of_primal;
  /// Those of the primal; all that the reverse kernel takes where that is known before, seeds as
  /// zeros. Snapshots and scalars are those of the launch that is gone back through.
  std::vector<runtime::Argument> arguments;
  const runtime::FixedArguments fixed = runtime::new_fixed_arguments();  ///< those
  std::vector<runtime::Argument> fields;  ///< Reverse::fields that are some
  /// A snapshot, among the arguments, which shows what a field held before a launch while that is
  /// gone back through.
  struct Snapshot {
    std::shared_ptr<runtime::Storage> of, storage;
    runtime::Storage::Contents nothing;   ///< shown where what it did takes memory of its own
    runtime::Storage::Contents contents;  ///< of the field, when they were asked for last
    /// Of a small field, those of its memory with that number.
    runtime::Storage::Versions* versions = nullptr;
    uint64_t versions_of = 0;

    /// Does it lie as the field does? That may have grown since.
    bool is_of_now() const;
  };
  std::vector<Snapshot> snapshots;
  std::vector<uint32_t> scalars;      ///< of the primal
  runtime::Device* device = nullptr;  ///< of the primal's fields; null: it has none
  bool takes_trees = false;           ///< Is one of them on a tree?
  std::vector<std::shared_ptr<runtime::Storage>> on_trees;  ///< whose adjoints are too
  struct Held {
    std::shared_ptr<runtime::Storage> storage;
    uint64_t memory = 0;  ///< that it had, by its number
    bool has_same_memory() const;
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

  /// Fields for what one launch keeps that computes its gradient at once: zeros, or anything where
  /// that is assigned. Nobody else has them while the list lives; small ones wait for the next launch
  /// then, as long as this is kept.
  using KeptFields = std::shared_ptr<const std::vector<runtime::Argument>>;
  static KeptFields kept_at_once(const std::shared_ptr<Passed>& of, Loc loc);

 private:
  friend class PassedBefore;
  friend class SeenFields;
  template <class F>
  void for_each_storage(F&& visit);
  /// Keeps none of the fields and companions any more.
  void let_go();
  /// Was it let go of these fields? Asks for their numbers alone, so that whoever has others may end
  /// them meanwhile.
  bool had(std::span<const runtime::Argument> given) const;
  /// The opposite of let_go(), behind had(). False where companions have ended: it is of no use then.
  bool take_up();

  bool is_replaced = false;       ///< by launches with other fields: it is not kept
  std::vector<uint64_t> numbers;  ///< Storage::number of each of of_primal; of a scalar 0
  std::vector<std::weak_ptr<runtime::Storage>> let_go_of;  ///< in the order of for_each_storage
  std::mutex idle_mutex;
  std::unique_ptr<const std::vector<runtime::Argument>> idle;  ///< KeptFields that nobody has
};

/// What tapes passed that have ended, for the next launch of the program with the same fields: making
/// it anew would take longer than a small launch. The last few are kept, without the fields, whose
/// owners decide when they end. May be used from several threads.
class PassedBefore {
 public:
  /// Null where there is none for these arguments.
  std::shared_ptr<Passed> take(const std::shared_ptr<Reversed::Program>& program,
                               std::span<const runtime::Argument> arguments);
  /// The same, to be used: it comes back when nobody does any more.
  static std::shared_ptr<Passed> lend(std::shared_ptr<Passed> passed);

 private:
  static void come_back(std::shared_ptr<Passed> passed) noexcept;
  std::shared_ptr<Passed> take_newest(std::span<const runtime::Argument> had);
  void add(std::shared_ptr<Passed> passed);
  std::mutex mutex_;
  std::vector<std::shared_ptr<Passed>> idle_;  ///< the newest last
};

/// What launches that follow each other have in common: contents of fields that nobody has written
/// in between, and what a kernel that is launched with the same fields again passes.
class SeenFields {
 public:
  enum Kept {
    once,     ///< contents share their fields' memory
    by_tape,  ///< of small fields they are copied, which many versions of them make cheaper
  };
  explicit SeenFields(Kept kept = once) : kept_(kept) {}

  std::shared_ptr<Passed> passed(const std::shared_ptr<Reversed::Program>& program,
                                 std::span<const runtime::Argument> arguments, Loc loc);
  /// Of the field. Those of small fields are there as long as this is.
  const runtime::Storage::Contents& now(Passed::Snapshot& snapshot, Loc loc);
  /// Nothing is recorded any more: what was passed is let go with the last launch that passed it.
  void end() { passed_.clear(); }

 private:
  Kept kept_;
  std::unordered_map<uint64_t, runtime::Storage::Versions> small_;  ///< by the memory's number
  /// The last few of each kernel, the newest first.
  std::unordered_map<const Reversed::Program*, std::vector<std::shared_ptr<Passed>>> passed_;
};

}  // namespace quern::autodiff
