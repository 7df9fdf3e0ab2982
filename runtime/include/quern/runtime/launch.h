#pragma once
// Launches of kernels that were compiled before.
#include <functional>

#include "quern/runtime/storage.h"

namespace quern::runtime {

/// What is passed for one parameter: the bits of a scalar, or a field's storage.
struct Argument {
  uint64_t bits = 0;
  std::shared_ptr<Storage> storage;
};

/// Names the arguments of a program's launch: others with this number pass the same storages in the
/// same memory, and have the same modes.
using SameArguments = uint64_t;
constexpr SameArguments other_arguments = 0;  ///< of which nothing is known

/// Names a list of arguments that whoever has made it passes again and again, with other scalars at
/// most: its storages stay the same.
using FixedArguments = uint64_t;
constexpr FixedArguments not_fixed = 0;
FixedArguments new_fixed_arguments();

struct Loaded;
struct LaunchMemory;

/// What decides about the code of a launch, in few words: of two launches of one kernel the keys are
/// equal where the signatures are.
class LaunchKey {
 public:
  LaunchKey(std::span<const Argument> arguments, ir::Modes modes);
  ir::Premises premises() const;
  bool has(const ir::Premises& premises) const;  ///< premises() == premises
  bool has(ir::Modes modes) const { return modes_ == modes; }
  /// Of an argument that is on a tree.
  struct OnTree {
    uint32_t tree = ir::no_binding;  ///< the first argument that is on it; on none: no_binding
    bool is_rebased = false;         ///< indices are not the tree's
    bool is_of_cells = false;
    bool operator==(const OnTree&) const = default;
  };
  std::vector<OnTree> trees() const;
  size_t hash() const;
  bool operator==(const LaunchKey&) const = default;

 private:
  friend ir::Signature signature_of(std::span<const Argument> arguments, ir::Modes modes);
  /// Of an argument; as Signature::Field has them, but for the first.
  struct Part {
    uint32_t facts = 0;  ///< Storage::facts_number; 0 for a scalar
    uint32_t alias_class = 0;
    uint32_t alignment = 1;
    uint32_t tree = 0;
    bool is_on_tree = false, is_rebased = false, is_of_cells = false;
    bool operator==(const Part&) const = default;
  };
  ir::Modes modes_;
  std::vector<Part> parts_;
};

/// What optimising goes by, of a launch with these arguments.
ir::Premises premises_of(std::span<const Argument> arguments, ir::Modes modes);

/// The results of a launch; reading waits for its stream. May be read from several threads.
class Outcome {
 public:
  Outcome(std::shared_ptr<Device> device, Stream& stream,
          std::shared_ptr<const LaunchRecord> launch, std::shared_ptr<LaunchMemory> block,
          size_t count, std::vector<std::shared_ptr<Storage>> kept);
  ~Outcome();
  /// Bits of result `k`. Where a check ended the launch, or one before it so that it did nothing,
  /// every call throws what the check found.
  uint64_t result(size_t k);
  /// The k-th buffer that the kernel keeps: a field of one axis with its elements, which may still be
  /// written. Null where the launch has not made it.
  const std::shared_ptr<Storage>& kept(size_t k) const { return kept_.at(k); }

 private:
  std::shared_ptr<Device> device_;
  Stream& stream_;
  std::shared_ptr<const LaunchRecord> launch_;
  std::mutex mutex_;
  std::shared_ptr<LaunchMemory> block_;
  std::vector<uint64_t> values_;
  const std::vector<std::shared_ptr<Storage>> kept_;
  bool read_ = false;
};

/// Makes the image for launches of 2^31 iterations and more, when the first of them comes.
using WideImage = std::function<std::shared_ptr<const Image>()>;

/// An image on a device, ready to be launched. May be launched from several threads.
class LoadedKernel {
 public:
  /// Throws Error with `loc` where the device does not run the image. Without a `wide` image, which
  /// some kernels want on some devices, such launches are errors.
  LoadedKernel(std::shared_ptr<Device> device, std::shared_ptr<const Image> image, Loc loc = {},
               WideImage wide = {});
  const Image& image() const;
  /// Throws Error with `loc` for arguments that do not fit, or are laid out or overlap otherwise
  /// than the image was made for; may return before the kernel ends. Null where it has no results.
  std::shared_ptr<Outcome> launch(std::span<const Argument> arguments, Loc loc = {}) const;

 private:
  std::shared_ptr<Loaded> loaded_;
};

}  // namespace quern::runtime
