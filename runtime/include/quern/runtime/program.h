#pragma once
#include <map>

#include "quern/runtime/biased_mutex.h"
#include "quern/runtime/compiler.h"
#include "quern/runtime/launch.h"
#include "quern/runtime/observer.h"

namespace quern::runtime {

class Recording;

/// A recorded kernel and what was compiled from it: an image for each signature, loaded once on each
/// device, whatever the sizes. May be launched from several threads.
class Program {
 public:
  /// Takes a kernel at level `recorded` or `structured`.
  explicit Program(std::unique_ptr<ir::Kernel> kernel);
  ~Program();

  const ir::Kernel& kernel() const;  ///< at level `structured`
  /// Runs the kernel on the device of its fields (which must agree), else on `fallback`, else on
  /// the standard device. Arguments stand in the order of the kernel's bindings. Throws Error with
  /// `loc` for arguments that do not fit; may return before the kernel ends. Null where it has no
  /// results. `fixed`: names these arguments, where they are a list as FixedArguments says.
  std::shared_ptr<Outcome> launch(std::span<const Argument> arguments, ir::Modes modes, Loc loc,
                                  const std::shared_ptr<Device>& fallback = nullptr,
                                  FixedArguments fixed = not_fixed);
  /// The image that such a launch would run.
  std::shared_ptr<const Image> image(std::span<const Argument> arguments, ir::Modes modes, Loc loc,
                                     const std::shared_ptr<Device>& fallback = nullptr);
  /// Compiles for a device and distinct arguments; the text of `kind` (see Compiler::listing).
  std::string listing(Device& device, ir::Modes modes, std::string_view kind);
  /// Images loaded so far, on all devices.
  size_t variants() const;
  Attached& attached() { return attached_; }

 private:
  struct OnDevice;
  /// A launch that was there before, and what its arguments led to.
  struct Known;
  std::shared_ptr<const Known> find(std::span<const Argument> arguments, ir::Modes modes,
                                    FixedArguments fixed) const;
  void remember(std::shared_ptr<const Known> launch);
  std::shared_ptr<Device> device_of(std::span<const Argument> arguments, Loc loc,
                                    const std::shared_ptr<Device>& fallback) const;
  OnDevice& on(const std::shared_ptr<Device>& device);
  /// `key`: of the arguments.
  std::shared_ptr<Loaded> variant(const std::shared_ptr<Device>& device, const LaunchKey& key,
                                  std::span<const Argument> arguments, ir::Modes modes);

  std::shared_ptr<Recording> recording_;
  std::shared_ptr<const ir::Kernel> source_;  ///< LaunchEvent::recording
  Attached attached_;
  std::vector<Image::Parameter> parameters_;
  mutable BiasedMutex mutex_;
  std::vector<std::unique_ptr<OnDevice>> devices_;
  std::vector<std::shared_ptr<const Known>> known_;             ///< the last few, the newest first
  std::map<std::string, std::shared_ptr<const Image>> images_;  ///< by Image::signature
};

}  // namespace quern::runtime
