#pragma once
// The Vulkan loader, found at run time, and the functions this back end calls.
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace quern::vulkan {

#define QUERN_VULKAN_INSTANCE_FUNCTIONS(F)  \
  F(DestroyInstance)                        \
  F(EnumeratePhysicalDevices)               \
  F(GetPhysicalDeviceProperties2)           \
  F(GetPhysicalDeviceFeatures2)             \
  F(GetPhysicalDeviceMemoryProperties)      \
  F(GetPhysicalDeviceQueueFamilyProperties) \
  F(EnumerateDeviceExtensionProperties)     \
  F(CreateDevice)                           \
  F(GetDeviceProcAddr)

#define QUERN_VULKAN_DEVICE_FUNCTIONS(F) \
  F(DestroyDevice)                       \
  F(GetDeviceQueue)                      \
  F(DeviceWaitIdle)                      \
  F(AllocateMemory)                      \
  F(FreeMemory)                          \
  F(MapMemory)                           \
  F(CreateBuffer)                        \
  F(DestroyBuffer)                       \
  F(GetBufferMemoryRequirements)         \
  F(BindBufferMemory)                    \
  F(GetBufferDeviceAddress)              \
  F(CreateSemaphore)                     \
  F(DestroySemaphore)                    \
  F(GetSemaphoreCounterValue)            \
  F(WaitSemaphores)                      \
  F(CreateCommandPool)                   \
  F(DestroyCommandPool)                  \
  F(AllocateCommandBuffers)              \
  F(BeginCommandBuffer)                  \
  F(EndCommandBuffer)                    \
  F(ResetCommandBuffer)                  \
  F(CmdBindPipeline)                     \
  F(CmdPushConstants)                    \
  F(CmdDispatch)                         \
  F(CmdPipelineBarrier)                  \
  F(CmdCopyBuffer)                       \
  F(CmdFillBuffer)                       \
  F(QueueSubmit)                         \
  F(CreateShaderModule)                  \
  F(DestroyShaderModule)                 \
  F(CreatePipelineLayout)                \
  F(DestroyPipelineLayout)               \
  F(CreateComputePipelines)              \
  F(DestroyPipeline)

/// A structure of Vulkan, zero but for its type.
template <class T>
T structure(VkStructureType type) {
  T t{};
  t.sType = type;
  return t;
}

/// Throws InternalError naming the call, or Error where memory ran out or the device was lost.
void expect(VkResult result, const char* call);
/// The name of a result: "VK_ERROR_DEVICE_LOST".
std::string result_name(VkResult result);

/// An instance of the loader. Kept as long as a device uses it.
class Instance {
 public:
  /// Null and a reason where there is no loader (`library`, tried as for dlopen), no driver or no
  /// Vulkan 1.3. QUERN_VULKAN_VALIDATION=1 turns the validation layers on.
  static std::shared_ptr<Instance> create(const char* library, std::string& why);
  /// The one that all devices share, made at first use.
  static std::shared_ptr<Instance> shared(std::string& why);
  ~Instance();
  Instance(const Instance&) = delete;

  VkInstance handle = nullptr;
#define QUERN_DECLARE(name) PFN_vk##name name = nullptr;
  QUERN_VULKAN_INSTANCE_FUNCTIONS(QUERN_DECLARE)
#undef QUERN_DECLARE

  bool validated() const { return messenger_ != nullptr; }
  /// Throws InternalError with what the validation layers said since the last call.
  void expect_silence();

 private:
  Instance() = default;
  bool open(const char* library, std::string& why);
  void listen(PFN_vkGetInstanceProcAddr find);
  static VKAPI_ATTR VkBool32 VKAPI_CALL heard(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                              VkDebugUtilsMessageTypeFlagsEXT,
                                              const VkDebugUtilsMessengerCallbackDataEXT*, void*);

  void* library_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger_ = nullptr;
  std::mutex mutex_;
  std::string messages_;
};

}  // namespace quern::vulkan
