#pragma once
// Machine code into this process, without a linker: a relocatable object file (ELF) becomes memory that
// may be executed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace quern::cpu {

using TaskFunction = void (*)(const void* args, int64_t chunk, int64_t begin, int64_t end);

/// The functions of an object file, in executable memory until this dies.
class LoadedObject {
 public:
  /// What the object calls besides itself (memset, and libm where the CPU lacks fma) is looked up
  /// in the process. Throws InternalError for a damaged object, and for what no code generator of
  /// Quern's makes; Error where the system gives no executable memory.
  LoadedObject(std::span<const std::byte> object, size_t tasks);
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;

  const std::vector<TaskFunction>& tasks() const { return tasks_; }

 private:
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  std::vector<TaskFunction> tasks_;
};

}  // namespace quern::cpu
