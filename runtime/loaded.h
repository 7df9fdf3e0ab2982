#pragma once
#include <deque>
#include <mutex>

#include "quern/runtime/biased_mutex.h"
#include "quern/runtime/observer.h"

namespace quern::runtime {

/// Memory of one launch: argument block and frame (one allocation; where tasks take the
/// block by value only the frame), and the kernel's buffers, which grow.
struct LaunchMemory {
  Loaded* loaded = nullptr;
  Address memory = 0;              ///< 0 where there is nothing to hold
  std::byte* host = nullptr;       ///< the host's view of `memory`, or null
  std::vector<std::byte> staging;  ///< argument block and frame where the host has no view
  struct Buffer {
    Address address = 0;
    uint64_t bytes = 0;     ///< there are
    uint64_t elements = 0;  ///< as the argument block says
  };
  std::vector<Buffer> buffers;  ///< in the order of Image::buffers
  uint32_t queue = 0;           ///< of the launches that use it
  Ticket last;
  uint64_t arguments = 0;  ///< that it was filled in for last, by SameArguments; 0: none known
  std::vector<Command> commands;  ///< of the last launch
  bool repeats = false;  ///< with those arguments, whatever scalars are, they are the same again

  std::byte* args() { return host ? host : staging.data(); }
};

/// An image on a device, and the memory of its launches.
struct Loaded {
  Loaded(std::shared_ptr<Device> device, std::shared_ptr<const Image> image, WideImage wide);
  ~Loaded();
  Loaded(const Loaded&) = delete;

  /// A block for a launch in the queue that the host may fill in: no launch is being submitted with
  /// it, no result of it is still to be read, no launch of another queue uses it, and where the
  /// host writes to the device's memory no launch runs on it. It comes back when the last reference
  /// goes.
  struct GiveBack {
    Loaded* to = nullptr;
    std::shared_ptr<Loaded> kept = nullptr;  ///< that, where nobody else keeps it
    void operator()(LaunchMemory* block) const {
      to->give_back(std::unique_ptr<LaunchMemory>(block));
    }
  };
  using Taken = std::unique_ptr<LaunchMemory, GiveBack>;
  /// One that was filled in for the same arguments, if there is one.
  Taken take_memory(uint32_t queue, SameArguments same);
  /// The code of the kernel's element tasks for 2^31 iterations and more, made and loaded at the
  /// first such launch. Throws Error where there is none.
  const Executable& wide();
  /// Where the frame of a launch is on the device.
  Address frame(const LaunchMemory& block) const {
    return image->takes_value ? block.memory : block.memory + frame_offset;
  }

  /// Of LaunchMemory::memory.
  uint64_t memory_bytes() const {
    return image->takes_value ? block_bytes - frame_offset : block_bytes;
  }

  const std::shared_ptr<Device> device;
  const std::shared_ptr<const Image> image;
  const std::shared_ptr<const Reporter> reporter;
  const uint32_t frame_offset, block_bytes;  ///< of argument block and frame on the host
  const std::vector<ir::abi::Packed> buffer_elements;
  const std::vector<uint32_t> written;  ///< parameters
  const bool repeats;  ///< Do commands follow from fields, and from how much memory buffers have?
  const std::unique_ptr<Executable> executable;

 private:
  using Free = std::deque<std::unique_ptr<LaunchMemory>>;
  std::unique_ptr<LaunchMemory> take_free(uint32_t queue, SameArguments same);
  Free::iterator best_of_free(uint32_t queue, SameArguments same);
  std::unique_ptr<LaunchMemory> make_memory(uint32_t queue);
  void give_back(std::unique_ptr<LaunchMemory> block);
  WideImage make_wide_;
  std::once_flag load_wide_;
  std::unique_ptr<Executable> wide_;
  BiasedMutex mutex_;
  Free free_;  ///< as they came back
};

/// What is known of a launch's arguments where a launch of the same storages has been before.
struct KnownArguments {
  KnownArguments(SameArguments number, std::span<const Argument> arguments);
  const SameArguments number;
  std::vector<uint32_t> scalars, snapshots;  ///< all that may be another in the next one
};
/// Puts them into a launch's block, which keeps those that it has. `known`: null for others.
void fill_arguments(const Loaded& kernel, std::span<const Argument> arguments,
                    const KnownArguments* known, LaunchMemory& block);
/// The signature of a launch with these arguments. Fields that may share elements get the class of
/// the first of them.
ir::Signature signature_of(std::span<const Argument> arguments, ir::Modes modes);
/// What is passed to a kernel, and the companions that derive from it: an argument for each
/// parameter. Throws Error with `loc` unless as many are passed as the kernel has parameters, and
/// where a companion finds no memory.
class AllArguments {
 public:
  AllArguments(const std::string& kernel, std::span<const Image::Parameter> parameters,
               std::span<const Argument> passed, Loc loc);
  operator std::span<const Argument>() const { return all_; }

 private:
  std::vector<Argument> own_;
  std::span<const Argument> all_;
};
/// The parts of trees that a launch uses besides its arguments.
class TreeArguments {
 public:
  TreeArguments(const Image& image, std::span<const Argument> arguments, Loc loc);
  /// Looks all of them up again: a tree that has changed may have others.
  void look_up();
  void append_to(std::vector<Touch>& touched) const;
  /// That the field passed for the parameter is on.
  Tree& of(uint32_t parameter) const { return *arguments_[parameter].storage->tree(); }
  Loc loc() const { return loc_; }

  struct Part {
    const Image::TreePart* part = nullptr;
    std::shared_ptr<Storage> storage = nullptr;
    bool writes = false;
    bool moved = false;  ///< when it was looked up last
    Address base = 0;
  };
  std::span<const Part> parts() const { return parts_; }

 private:
  std::span<const Argument> arguments_;
  Loc loc_;
  std::vector<Part> parts_;
  std::vector<std::shared_lock<std::shared_mutex>> held_;  ///< of a snapshot's parts
};

/// Throws Error with `loc` for arguments that the kernel's code, however specialised, cannot take.
void check_arguments(const std::string& kernel, std::span<const Image::Parameter> parameters,
                     std::span<const Argument> arguments, Loc loc);
/// What messages call parameter `index`.
std::string describe(const Image::Parameter& parameter, size_t index);

/// Runs the kernel; the arguments fit its image. Null where it has no results. Throws Error with
/// `loc` where a snapshot of what it writes finds no memory.
std::shared_ptr<Outcome> launch(const std::shared_ptr<Loaded>& kernel,
                                std::span<const Argument> arguments, Loc loc,
                                const KnownArguments* known = nullptr);
/// Runs a launch of a kernel, and tells those who observe it: `event()`, a LaunchEvent.
template <class Event, class F>
std::shared_ptr<Outcome> observed(Event&& event, F&& run) {
  LaunchCall call(LaunchCall::kernel);
  if (!call.is_observed()) return run();
  const LaunchEvent told = event();
  std::shared_ptr<Outcome> outcome;
  if (!call.begin(told, outcome)) outcome = run();
  call.end(told);
  return outcome;
}

/// Fills in the block's head and runs the schedule in the stream, which is the current one. Returns
/// when everything is submitted: the buffers that the kernel keeps, in their order, null where one
/// was not made.
std::vector<std::shared_ptr<Storage>> execute(Loaded& kernel, LaunchMemory& block, Stream& stream,
                                              LaunchRecord& launch, TreeArguments& trees);

}  // namespace quern::runtime
