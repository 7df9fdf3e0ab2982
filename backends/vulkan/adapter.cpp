#include "backends/vulkan/adapter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "quern/error.h"

namespace quern::vulkan {

namespace {

/// Mesa's software driver keeps the conditions of 79 ifs, and the state of 80 loops, inside each
/// other; it runs what is deeper as if it stood outside. Ifs and loops of the code generator's own
/// stand around and inside those of a task.
constexpr uint32_t mesa_nesting = 64;
/// SPIR-V's universal limit is 1,023 constructs, ifs and loops together.
constexpr uint32_t spirv_nesting = 500;

/// The feature structures in one chain, for asking and for enabling.
struct Features {
  VkPhysicalDeviceFeatures2 base =
      structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  VkPhysicalDeviceVulkan11Features v11 = structure<VkPhysicalDeviceVulkan11Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  VkPhysicalDeviceVulkan12Features v12 = structure<VkPhysicalDeviceVulkan12Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float =
      structure<VkPhysicalDeviceShaderAtomicFloatFeaturesEXT>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT);

  explicit Features(bool has_atomic_float) {
    base.pNext = &v11;
    v11.pNext = &v12;
    if (has_atomic_float) v12.pNext = &atomic_float;
  }
  Features(const Features&) = delete;
};

struct Required {
  const char* name;
  VkBool32 (*get)(const Features&);
  void (*set)(Features&);
};
#define QUERN_FEATURE(part, field)                         \
  {#field, [](const Features& f) { return f.part.field; }, \
   [](Features& f) { f.part.field = VK_TRUE; }}
const Required required[] = {
    QUERN_FEATURE(base.features, shaderInt64),   QUERN_FEATURE(base.features, shaderInt16),
    QUERN_FEATURE(base.features, shaderFloat64), QUERN_FEATURE(v11, storageBuffer16BitAccess),
    QUERN_FEATURE(v12, storageBuffer8BitAccess), QUERN_FEATURE(v12, shaderInt8),
    QUERN_FEATURE(v12, bufferDeviceAddress),     QUERN_FEATURE(v12, timelineSemaphore),
    QUERN_FEATURE(v12, vulkanMemoryModel),       QUERN_FEATURE(v12, vulkanMemoryModelDeviceScope),
};
#undef QUERN_FEATURE

bool has_extension(const Instance& vk, VkPhysicalDevice device, const char* name) {
  uint32_t count = 0;
  vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vk.EnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  return std::ranges::any_of(
      all, [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
}

std::optional<uint32_t> compute_family(const Instance& vk, VkPhysicalDevice device) {
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> all(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(device, &count, all.data());
  for (uint32_t k = 0; k < count; k++)
    if (all[k].queueFlags & VK_QUEUE_COMPUTE_BIT) return k;
  return std::nullopt;
}

/// Memory on the device, seen by the host where most of it can be (not through a small window).
void choose_memory(const Instance& vk, Adapter& a) {
  VkPhysicalDeviceMemoryProperties memory;
  vk.GetPhysicalDeviceMemoryProperties(a.handle, &memory);
  VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  VkMemoryPropertyFlags host =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  auto first = [&](VkMemoryPropertyFlags flags) {
    uint32_t k = 0;
    while (k < memory.memoryTypeCount && (memory.memoryTypes[k].propertyFlags & flags) != flags)
      k++;
    return k;
  };
  uint32_t on_device = first(local), both = first(local | host);
  auto heap_size = [&](uint32_t type) {
    return memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
  };
  a.staging_type = first(host);  // always exists
  a.mapped = both < memory.memoryTypeCount && heap_size(both) >= heap_size(on_device) / 2;
  a.memory_type = a.mapped ? both : on_device;
}

std::optional<Adapter> describe(const Instance& vk, VkPhysicalDevice device, std::string& why) {
  VkPhysicalDeviceVulkan11Properties v11 = structure<VkPhysicalDeviceVulkan11Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
  VkPhysicalDeviceVulkan12Properties v12 = structure<VkPhysicalDeviceVulkan12Properties>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  VkPhysicalDeviceProperties2 properties =
      structure<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &v11;
  v11.pNext = &v12;
  vk.GetPhysicalDeviceProperties2(device, &properties);
  const VkPhysicalDeviceProperties& p = properties.properties;
  auto refuse = [&](const std::string& reason) {
    why += (why.empty() ? "" : "; ") + std::string(p.deviceName) + " " + reason;
    return std::nullopt;
  };
  if (p.apiVersion < VK_API_VERSION_1_3) return refuse("has no Vulkan 1.3");

  bool atomic_float = has_extension(vk, device, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
  Features features(atomic_float);
  vk.GetPhysicalDeviceFeatures2(device, &features.base);
  for (const Required& r : required)
    if (!r.get(features)) return refuse(std::string("lacks ") + r.name);
  std::optional<uint32_t> family = compute_family(vk, device);
  if (!family) return refuse("has no compute queue");

  Adapter a;
  a.handle = device;
  a.queue_family = *family;
  a.max_allocation = v11.maxMemoryAllocationSize;
  a.max_groups[0] = p.limits.maxComputeWorkGroupCount[0];
  a.max_groups[1] = p.limits.maxComputeWorkGroupCount[1];
  a.max_group_threads =
      std::min(p.limits.maxComputeWorkGroupInvocations, p.limits.maxComputeWorkGroupSize[0]);
  a.is_cpu = p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  a.name = p.deviceName;
  a.abilities.int64_atomics = features.v12.shaderBufferInt64Atomics;
  a.abilities.f32_atomic_add = features.atomic_float.shaderBufferFloat32AtomicAdd;
  a.abilities.keep_nan =
      v12.shaderSignedZeroInfNanPreserveFloat32 && v12.shaderSignedZeroInfNanPreserveFloat64;
  a.abilities.round_even = v12.shaderRoundingModeRTEFloat32 && v12.shaderRoundingModeRTEFloat64;
  a.abilities.keep_denorm = v12.shaderDenormPreserveFloat32 && v12.shaderDenormPreserveFloat64;
  a.abilities.mesa_software = v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
  choose_memory(vk, a);
  return a;
}

}  // namespace

runtime::Target Adapter::target() const {
  runtime::Target t;
  t.backend = "vulkan";
  t.isa = "spirv-1.6" + abilities.text();
  t.device = name;
  t.traits.walk = ir::Task::element;
  t.traits.told_of_failures = true;
  t.traits.fma_exact[0] = t.traits.fma_exact[1] = false;
  t.traits.float_atomic_add[0] = abilities.f32_atomic_add;
  t.traits.float_atomic_add[1] = false;
  t.traits.narrow_atomics = false;
  t.traits.block_reductions = abilities.int64_atomics;  // atomics on all types
  t.traits.half_conversions = false;
  t.traits.if_nesting = t.traits.loop_nesting =
      abilities.mesa_software ? mesa_nesting : spirv_nesting;
  t.workers = is_cpu ? 64 : 4096;  // a chunk is one invocation: a GPU wants many
  t.max_allocation = max_allocation;
  return t;
}

std::vector<Adapter> adapters(const Instance& vk, std::string& why) {
  uint32_t count = 0;
  vk.EnumeratePhysicalDevices(vk.handle, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  vk.EnumeratePhysicalDevices(vk.handle, &count, handles.data());
  handles.resize(count);
  std::vector<Adapter> found, software;
  std::map<std::string, int> names;
  for (VkPhysicalDevice device : handles) {
    auto a = describe(vk, device, why);
    if (!a) continue;
    int number = ++names[a->name];
    if (number > 1) a->name += " (" + std::to_string(number) + ")";  // the name tells them apart
    (a->is_cpu ? software : found).push_back(*a);
  }
  if (count == 0) why = "no Vulkan device is present";
  // Real devices before software ones; otherwise the loader's order.
  found.insert(found.end(), software.begin(), software.end());
  return found;
}

VkDevice create_device(const Instance& vk, const Adapter& adapter) {
  Features features(adapter.abilities.f32_atomic_add);
  for (const Required& r : required) r.set(features);
  features.v12.shaderBufferInt64Atomics = adapter.abilities.int64_atomics;
  features.atomic_float.shaderBufferFloat32AtomicAdd = adapter.abilities.f32_atomic_add;
  float priority = 1;
  VkDeviceQueueCreateInfo queue =
      structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = adapter.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const char* extension = VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME;
  VkDeviceCreateInfo info = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &features.base;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = adapter.abilities.f32_atomic_add ? 1 : 0;
  info.ppEnabledExtensionNames = &extension;
  VkDevice device = nullptr;
  expect(vk.CreateDevice(adapter.handle, &info, nullptr, &device), "vkCreateDevice");
  return device;
}

}  // namespace quern::vulkan
