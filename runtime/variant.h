#pragma once
#include <optional>

#include "quern/runtime/program.h"
#include "runtime/host_expression.h"

namespace quern::runtime {

/// Memory of one launch: argument block and frame (one allocation; where tasks take the
/// block by value only the frame), and scratch that grows.
struct Block {
  Variant* variant = nullptr;
  Address memory = 0;              ///< 0 where there is nothing to hold
  std::byte* host = nullptr;       ///< the host's view of `memory`, or null
  std::vector<std::byte> staging;  ///< argument block and frame where the host has no view
  Address scratch = 0;
  uint64_t scratch_bytes = 0;
  Ticket last = 0;

  std::byte* args() { return host ? host : staging.data(); }
};

/// A kernel compiled for one device, one set of modes and one pattern of overlapping arguments.
struct Variant {
  Variant(std::shared_ptr<Device> device, std::shared_ptr<const ir::Kernel> source,
          const ir::Signature& signature);
  ~Variant();
  Variant(const Variant&) = delete;

  /// A block that the host may fill in: no launch is being submitted with it, no result of it is
  /// still to be read, and where the host writes to the device's memory no launch runs on it. It
  /// comes back when the last reference goes.
  static std::shared_ptr<Block> take_block(const std::shared_ptr<Variant>& self);
  /// The code of the kernel's element tasks for 2^31 iterations and more, compiled at the first
  /// such launch.
  const Executable& wide();
  /// Where the frame of a launch is on the device.
  Address frame(const Block& block) const {
    return takes_value ? block.memory : block.memory + frame_offset;
  }

  std::shared_ptr<Device> device;
  std::shared_ptr<const Reporter> reporter;
  std::unique_ptr<ir::Kernel> kernel;
  ir::abi::Layout layout;
  uint32_t frame_offset = 0, block_bytes = 0;  ///< of argument block and frame on the host
  bool takes_value = false;                    ///< ir::takes_value
  std::unique_ptr<Executable> executable;
  struct Plan {
    std::optional<HostExpression> domain;
    uint64_t operations = 0;  ///< of an iteration, estimated
  };
  std::vector<Plan> plans;

 private:
  void give_back(std::unique_ptr<Block> block);
  std::shared_ptr<const ir::Kernel> source_;
  ir::Signature signature_;
  std::once_flag compile_wide_;
  std::unique_ptr<Executable> wide_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> free_;
};

/// The kernel as it is compiled for a target: optimised, split and (where wanted) lowered.
struct Prepared {
  std::unique_ptr<ir::Kernel> kernel;
  std::vector<uint64_t> operations;  ///< of an iteration of each task, estimated
};
Prepared prepare(const ir::Kernel& kernel, const ir::Signature& signature, const Target& target);

/// Called with every kernel for which a variant is about to be made, on the thread that launches
/// it; what it throws the launch throws. Null: none. Tests compile kernels for absent devices here.
using VariantHook = void (*)(const ir::Kernel& source, const ir::Signature& signature);
void set_variant_hook(VariantHook hook);

/// Fills in the block's head and runs the schedule. Returns when everything is submitted.
void execute(Variant& variant, Block& block, LaunchRecord& launch);

}  // namespace quern::runtime
