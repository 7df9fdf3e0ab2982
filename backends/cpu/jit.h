#pragma once
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
  virtual ~LoadedObject() = default;
  std::vector<TaskFunction> tasks;
};

/// Links an object file made by Compiler into this process. Throws InternalError where it cannot
/// (a damaged object).
std::unique_ptr<LoadedObject> load_object(std::span<const std::byte> object, size_t tasks);

}  // namespace quern::cpu
