#pragma once
// Being told of launches: what a profiler, a tape of launches or an exchange of halos stands on.
#include <memory>
#include <mutex>
#include <string_view>
#include <typeindex>
#include <vector>

#include "quern/runtime/launch.h"

namespace quern::runtime {

class LaunchObserver;

/// What observers keep with a kernel's program, for as long as that is there: one of each type. May be
/// used from several threads.
class Attached {
 public:
  /// What `make()` yielded when it was first asked for a T, a std::shared_ptr.
  template <class T, class Make>
  std::shared_ptr<T> get(Make make) {
    std::lock_guard lock(mutex_);
    for (const auto& [type, kept] : kept_)
      if (type == typeid(T)) return std::static_pointer_cast<T>(kept);
    std::shared_ptr<T> made = make();
    kept_.emplace_back(typeid(T), made);
    return made;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::type_index, std::shared_ptr<void>>> kept_;
};

/// A call that launches: of a kernel, or of an algorithm of the library, whose kernels it stands for.
/// What it refers to is there while the observer is called.
struct LaunchEvent {
  static inline const std::shared_ptr<const ir::Kernel> no_recording = nullptr;

  std::string_view name;  ///< of the kernel or the algorithm ("sort")
  /// Null for an image that was loaded alone, and for an algorithm.
  const std::shared_ptr<const ir::Kernel>& recording = no_recording;
  Attached* attached = nullptr;  ///< to the recording's program; null where there is no recording
  /// Of each argument: name, type, and whether elements of it are read and written.
  std::span<const Image::Parameter> parameters;
  std::span<const Argument> arguments;
  ir::Modes modes;                 ///< of a kernel
  const LaunchKey* key = nullptr;  ///< of the arguments; null where there is no recording
  SameArguments same = other_arguments;
  const std::shared_ptr<Device>& device;
  Loc loc;  ///< of the call
  /// Who launches something in its place that does all that it does, and more: the first that says so
  /// before it. Nobody does so for an algorithm.
  mutable LaunchObserver* instead = nullptr;
};

/// Told on the thread that calls. Launches that it makes itself are told to nobody.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  /// Arguments fit, and nothing has been submitted. What it throws the call throws, and nothing
  /// runs.
  virtual void before(const LaunchEvent&) {}
  /// Of who is LaunchEvent::instead: launches something else, behind what all did before it. What it
  /// throws the call throws.
  virtual std::shared_ptr<Outcome> launch_instead(const LaunchEvent&) { return nullptr; }
  /// Everything was submitted, and may still run. Not told where the call threw.
  virtual void after(const LaunchEvent&) noexcept {}
};

/// Has an observer told, by all threads, from its making to its end. Not to be made or ended within
/// an observer's calls.
class Observation {
 public:
  enum Grain {
    calls,    ///< each launch by the user's code, and each call of an algorithm
    kernels,  ///< each launch of a kernel, those of algorithms too
  };
  /// `observer` outlives it.
  explicit Observation(LaunchObserver& observer, Grain grain = calls);
  ~Observation();
  Observation(const Observation&) = delete;

 private:
  LaunchObserver& observer_;
};

/// Made where a call begins, for as long as it lasts: what is launched meanwhile on this thread is
/// part of it.
class LaunchCall {
 public:
  /// upkeep: the runtime's own, of which nobody is told, and which counts as no launch where random
  /// numbers are drawn
  enum Kind { kernel, algorithm, upkeep };
  explicit LaunchCall(Kind kind);
  ~LaunchCall();
  LaunchCall(const LaunchCall&) = delete;
  /// Is the thread in upkeep?
  static bool in_upkeep();
  /// Is there anybody to tell? Else `begin` and `end` need not be called.
  bool is_observed() const { return is_observed_; }
  /// Would launches of this thread be told to those who observe them?
  static bool tells();
  /// Throws what an observer throws.
  void begin(const LaunchEvent& event);
  /// The same of a kernel's launch, and that of who launches something in its place: `outcome`, and it
  /// comes back true.
  bool begin(const LaunchEvent& event, std::shared_ptr<Outcome>& outcome);
  void end(const LaunchEvent& event) noexcept;

 private:
  template <class F, class Then>
  void tell(F&& f, Then&& then) const;
  Kind kind_;
  bool is_outermost_, is_observed_;
};

}  // namespace quern::runtime
