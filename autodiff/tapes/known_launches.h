#pragma once
// Launches that a tape knows, by kernel and fields.
#include "autodiff/tapes/launches.h"
#include "autodiff/tapes/memories.h"

namespace quern::autodiff {

/// A launch that was recorded, and all that holds of another of the same kernel with the same fields
/// in the same memory.
struct KnownLaunch {
  uint64_t variation = 0;  ///< up to which `varied` was compared
  struct Argument {
    KnownMemory* memory = nullptr;  ///< null: a scalar
    bool varied = false;            ///< before the launch
  };
  std::vector<Argument> arguments;
  std::vector<uint32_t> written;               ///< of these
  bool has_been = false;                       ///< and has noted the versions of all
  std::shared_ptr<Reversed> reversed;          ///< null: going back has nothing to do
  std::shared_ptr<Reversed::Program> program;  ///< of `reversed`, that which may augment
  std::unique_ptr<KnownLaunch> less;           ///< less_augmented(); null: there was none
  std::shared_ptr<Passed> passed;              ///< to it
  struct Wanted {
    KnownMemory* memory = nullptr;
    uint64_t bytes = 0;  ///< that the field takes
  };
  std::vector<Wanted> wanted;  ///< of each of its snapshots

  /// Does the same vary as when it was recorded?
  bool varies_alike(const Memories& memories);
  void expect_known(const runtime::LaunchEvent& event) const;
  /// `passed` and `wanted` become those of a launch now.
  void pass(const runtime::LaunchEvent& event, SeenFields& seen, Memories& memories);
  /// That going back wants what fields hold.
  void note_wanted(std::span<const runtime::Storage::Contents> contents) const;
  /// The same for launches that keep less, or nothing, in the primal's place: of one that may.
  KnownLaunch& less_augmented(const runtime::LaunchEvent& event);
  /// What such a launch has left.
  void note_written(const runtime::LaunchEvent& event);
};

class KnownLaunches {
 public:
  /// Null where none is known.
  KnownLaunch* find(const runtime::LaunchEvent& event, const Memories& memories) const;
  /// A new one, before what the launch writes varies with what it reads. Without arguments for a
  /// launch of which more is to be asked each time: with fields on trees, and snapshots.
  static std::unique_ptr<KnownLaunch> make(const runtime::LaunchEvent& event, Memories& memories);
  /// It is found from here on, and is `launch` no more, where there can be another like it.
  KnownLaunch& add(std::unique_ptr<KnownLaunch>& launch, const runtime::LaunchEvent& event);

 private:
  std::unordered_map<runtime::SameArguments, KnownLaunch*> all_;
  std::vector<std::unique_ptr<KnownLaunch>> added_;  ///< some in place of others
};

}  // namespace quern::autodiff
