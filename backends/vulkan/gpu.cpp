#include "backends/vulkan/gpu.h"

namespace quern::vulkan {

Gpu::Gpu(std::shared_ptr<Instance> shared, const Adapter& with)
    : instance(std::move(shared)), adapter(with) {
  handle = create_device(*instance, adapter);
#define QUERN_FIND(name) \
  name = reinterpret_cast<PFN_vk##name>(instance->GetDeviceProcAddr(handle, "vk" #name));
  QUERN_VULKAN_DEVICE_FUNCTIONS(QUERN_FIND)
#undef QUERN_FIND
  GetDeviceQueue(handle, adapter.queue_family, 0, &queue);
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(PushConstants)};
  auto info = structure<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  VkResult result = CreatePipelineLayout(handle, &info, nullptr, &layout);
  if (result != VK_SUCCESS) DestroyDevice(handle, nullptr);
  expect(result, "vkCreatePipelineLayout");
}

Gpu::~Gpu() {
  DestroyPipelineLayout(handle, layout, nullptr);
  DestroyDevice(handle, nullptr);
}

}  // namespace quern::vulkan
