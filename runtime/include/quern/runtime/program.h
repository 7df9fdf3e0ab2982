#pragma once
#include <map>

#include "quern/runtime/storage.h"

namespace quern::runtime {

/// What is passed for one binding: the bits of a scalar, or a field's storage.
struct Argument {
  uint64_t bits = 0;
  std::shared_ptr<Storage> storage;
};

struct Variant;
struct Block;

/// The results of a launch; reading waits for it. May be read from several threads.
class Outcome {
 public:
  Outcome(std::shared_ptr<Device> device, std::shared_ptr<const LaunchRecord> launch,
          std::shared_ptr<Block> block, size_t count);
  ~Outcome();
  /// Bits of result `k`. Where a check ended the launch, or one before it so that it did nothing,
  /// every call throws what the check found.
  uint64_t result(size_t k);

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<const LaunchRecord> launch_;
  std::mutex mutex_;
  std::shared_ptr<Block> block_;
  std::vector<uint64_t> values_;
  bool read_ = false;
};

/// A recorded kernel and what was compiled from it: one variant for each device, mode and pattern
/// of overlapping arguments, whatever the sizes. May be launched from several threads.
class Program {
 public:
  /// Takes a kernel at level `recorded` or `structured`.
  explicit Program(std::unique_ptr<ir::Kernel> kernel);
  ~Program();

  const ir::Kernel& kernel() const { return *kernel_; }
  /// Runs the kernel on the device of its fields (which must agree), else on `fallback`, else on
  /// the standard device. Arguments stand in the order of the kernel's bindings. Throws Error with
  /// `loc` for arguments that do not fit; may return before the kernel ends. Null where it has no
  /// results.
  std::shared_ptr<Outcome> launch(std::span<const Argument> arguments, ir::Modes modes, Loc loc,
                                  const std::shared_ptr<Device>& fallback = nullptr);
  /// Compiles for a device and distinct arguments; the text of `kind` (see Compiler::listing).
  std::string listing(Device& device, ir::Modes modes, std::string_view kind);
  /// Variants compiled so far.
  size_t variants() const;

 private:
  void check_arguments(std::span<const Argument> arguments, Loc loc) const;
  std::shared_ptr<Device> device_of(std::span<const Argument> arguments, Loc loc,
                                    const std::shared_ptr<Device>& fallback) const;
  std::shared_ptr<Variant> variant(const std::shared_ptr<Device>& device,
                                   const ir::Signature& signature,
                                   std::span<const Argument> arguments);

  struct NarrowExtent {
    uint32_t binding, axis;
    Loc loc;
  };
  std::shared_ptr<const ir::Kernel> kernel_;
  std::vector<NarrowExtent> narrow_;  ///< extents the kernel reads as 32-bit integers
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Variant>> variants_;
};

}  // namespace quern::runtime
