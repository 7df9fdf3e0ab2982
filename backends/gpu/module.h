#pragma once
// Loaded machine code, and how its tasks are spread over a device.
#include <mutex>
#include <unordered_map>

#include "backends/gpu/queues.h"

namespace quern::gpu {

/// Code that the driver has loaded.
class Module {
 public:
  /// Throws InternalError, or Error where the device cannot run it; with the driver's own words.
  Module(std::shared_ptr<Gpu> gpu, std::span<const std::byte> image);
  ~Module();
  Module(const Module&) = delete;

  /// Throws InternalError where it has no such function.
  FunctionHandle function(const std::string& name) const;

  const std::vector<std::byte> image;

 private:
  std::shared_ptr<Gpu> gpu_;
  ModuleHandle handle_ = nullptr;
};

/// The modules in use: the same code is loaded once.
class Modules {
 public:
  std::shared_ptr<const Module> load(const std::shared_ptr<Gpu>& gpu,
                                     std::span<const std::byte> image);

 private:
  std::mutex mutex_;
  std::unordered_multimap<size_t, std::weak_ptr<const Module>> known_;  ///< by hash of the image
};

/// What a task is launched with.
struct Geometry {
  uint32_t grid = 0, block = 0;  ///< blocks, threads in each; a grid of 0: nothing to do
};

/// The tasks of a kernel. Function `task_<k>` takes the five words of a launch: args, guard with
/// Launch::asks in abi::asks_bit, and runtime::words_of its work. Where Image::takes_value is set,
/// the argument block itself stands in place of the first.
class Program : public Used {
 public:
  /// Throws Error at a task's line where a block of the user's size cannot run.
  Program(std::shared_ptr<Gpu> gpu, const runtime::Image& image,
          std::shared_ptr<const Module> module);

  const bool takes_value;

  FunctionHandle function(uint32_t task) const { return tasks_.at(task).function; }
  /// Element: blocks of the size with which most threads are resident, or of the user's; `once`: a
  /// thread an iteration, else as many blocks as keep the device full, whose threads go on with a
  /// stride. Chunked: a thread a chunk. Loops too short for that get smaller blocks, so that they
  /// spread. Throws Error where the device cannot start as many chunks, or threads of one iteration,
  /// at once.
  Geometry geometry(const runtime::Launch& launch) const;

 private:
  struct Task {
    FunctionHandle function = nullptr;
    ir::Task::Kind kind{};
    ir::Task::Walk walk{};
    uint32_t block = 1;         ///< threads of a block
    bool lanes = false;         ///< Image::Task::lanes
    bool fixed = false;         ///< by the user
    bool combines = false;      ///< the threads of a block, at its end
    bool once = false;          ///< Image::Task::once
    uint64_t resident = ~0ull;  ///< blocks that run at once on the whole device
  };
  Task prepare(const runtime::Image::Task& task, FunctionHandle function) const;

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<const Module> module_;
  std::vector<Task> tasks_;
};

}  // namespace quern::gpu
