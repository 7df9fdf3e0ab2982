#pragma once
// Copies that come together, as one launch.
#include "backends/gpu/queues.h"

namespace quern::gpu {

/// Where each copy would cost what a launch does, several small ones are a launch of one kernel,
/// where the vendor has it (Api::copy_module). Its function `copies` takes the pieces by value,
/// `pieces` of them at most, and is launched with a column of blocks for each: thread i of a column
/// copies the i-th word. Members are called within the functions of Queues.
class Copies {
 public:
  static constexpr size_t pieces = 32;
  /// Longer copies are not slower by themselves.
  static constexpr uint64_t most_bytes = 1 << 20;

  explicit Copies(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  ~Copies();
  Copies(const Copies&) = delete;

  /// Puts as many of the first commands into the stream as one launch may do, and says how many: 0
  /// where the first is none of them. Alone a copy does not bring the kernel in.
  size_t record(std::span<const runtime::Command> commands, StreamHandle stream);

 private:
  struct Piece {
    Address to = 0, from = 0;
    uint64_t words = 0;
  };
  bool load();
  size_t gather(std::span<const runtime::Command> commands, Piece (&found)[pieces]) const;

  std::shared_ptr<Gpu> gpu_;
  ModuleHandle module_ = nullptr;
  FunctionHandle function_ = nullptr;
  bool supported_ = true;  ///< until there is no kernel, or none that loads
};

}  // namespace quern::gpu
