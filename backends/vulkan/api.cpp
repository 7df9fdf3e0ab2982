#include "backends/vulkan/api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "quern/error.h"

namespace quern::vulkan {

std::string result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_INVALID_SHADER_NV: return "VK_ERROR_INVALID_SHADER_NV";
    default: return "VkResult " + std::to_string(int(result));
  }
}

void expect(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  std::string text = std::string(call) + " failed: " + result_name(result);
  if (result == VK_ERROR_DEVICE_LOST || result == VK_ERROR_OUT_OF_HOST_MEMORY ||
      result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
    throw Error("Vulkan: " + text);
  throw InternalError("Vulkan: " + text);
}

std::shared_ptr<Instance> Instance::create(const char* library, std::string& why) {
  std::shared_ptr<Instance> instance(new Instance);
  return instance->open(library, why) ? instance : nullptr;
}

std::shared_ptr<Instance> Instance::shared(std::string& why) {
  // Never destroyed: at exit drivers and layers may be gone before a static of this library.
  static auto& reason = *new std::string;
  static const auto& instance = *new std::shared_ptr<Instance>(create("libvulkan.so.1", reason));
  why = reason;
  return instance;
}

bool Instance::open(const char* library, std::string& why) {
  library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    why = "no Vulkan loader: " + std::string(dlerror());
    return false;
  }
  auto find = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library_, "vkGetInstanceProcAddr"));
  auto create_instance =
      find ? reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance")) : nullptr;
  auto version = find ? reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
                            find(nullptr, "vkEnumerateInstanceVersion"))
                      : nullptr;
  uint32_t number = 0;
  if (!create_instance || !version || version(&number) != VK_SUCCESS ||
      number < VK_API_VERSION_1_3) {
    why = std::string(library) + " has no Vulkan 1.3";
    return false;
  }

  VkApplicationInfo application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pEngineName = "quern";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo info =
      structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  const char* layer = "VK_LAYER_KHRONOS_validation";
  const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  VkValidationFeatureEnableEXT enable = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features =
      structure<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &enable;
  const char* wanted = std::getenv("QUERN_VULKAN_VALIDATION");
  bool validate = wanted && std::strcmp(wanted, "1") == 0;
  if (validate) {
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
  }
  VkResult result = create_instance(&info, nullptr, &handle);
  if (result != VK_SUCCESS) {
    handle = nullptr;
    why = result == VK_ERROR_INCOMPATIBLE_DRIVER
              ? "no Vulkan driver is installed"
              : "vkCreateInstance failed: " + result_name(result);
    return false;
  }
#define QUERN_FIND(name) name = reinterpret_cast<PFN_vk##name>(find(handle, "vk" #name));
  QUERN_VULKAN_INSTANCE_FUNCTIONS(QUERN_FIND)
#undef QUERN_FIND
  if (validate) listen(find);
  return true;
}

void Instance::listen(PFN_vkGetInstanceProcAddr find) {
  auto create_messenger = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      find(handle, "vkCreateDebugUtilsMessengerEXT"));
  destroy_messenger_ = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      find(handle, "vkDestroyDebugUtilsMessengerEXT"));
  VkDebugUtilsMessengerCreateInfoEXT info = structure<VkDebugUtilsMessengerCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType =
      VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = heard;
  info.pUserData = this;
  expect(create_messenger(handle, &info, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

VkBool32 Instance::heard(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                         const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  auto* instance = static_cast<Instance*>(self);
  std::lock_guard lock(instance->mutex_);
  instance->messages_ += std::string(data->pMessage) + "\n";
  return VK_FALSE;
}

void Instance::expect_silence() {
  std::string said;
  {
    std::lock_guard lock(mutex_);
    said.swap(messages_);
  }
  if (!said.empty()) throw InternalError("the Vulkan validation layers say: " + said);
}

Instance::~Instance() {
  if (messenger_) destroy_messenger_(handle, messenger_, nullptr);
  if (handle) DestroyInstance(handle, nullptr);
  if (library_) dlclose(library_);
}

}  // namespace quern::vulkan
