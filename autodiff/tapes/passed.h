#pragma once
// What launches that are recorded pass to their reverse kernels.
#include <atomic>
#include <unordered_map>

#include "autodiff/tapes/reversed.h"
#include "quern/runtime/biased_mutex.h"

namespace quern::autodiff {

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

}  // namespace quern::autodiff
