#pragma once
// A logical device with its queue and the functions that work on it.
#include "backends/vulkan/adapter.h"

namespace quern::vulkan {

struct Gpu {
  /// Throws Error or InternalError where the device cannot be opened.
  Gpu(std::shared_ptr<Instance> instance, const Adapter& adapter);
  ~Gpu();
  Gpu(const Gpu&) = delete;

  /// After a call into Vulkan: reports what the validation layers found.
  void expect_silence() const {
    if (instance->validated()) instance->expect_silence();
  }

  std::shared_ptr<Instance> instance;
  Adapter adapter;
  VkDevice handle = nullptr;
  VkQueue queue = nullptr;
  VkPipelineLayout layout = nullptr;  ///< of every task: push constants only
#define QUERN_DECLARE(name) PFN_vk##name name = nullptr;
  QUERN_VULKAN_DEVICE_FUNCTIONS(QUERN_DECLARE)
#undef QUERN_DECLARE
};

}  // namespace quern::vulkan
