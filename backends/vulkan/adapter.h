#pragma once
// The physical devices: which of them can run Quern, and what they can do.
#include "backends/vulkan/api.h"
#include "backends/vulkan/interface.h"
#include "quern/runtime/backend.h"

namespace quern::vulkan {

struct Adapter {
  VkPhysicalDevice handle = nullptr;
  uint32_t queue_family = 0;
  uint32_t memory_type = 0;  ///< where fields live
  bool mapped = false;       ///< the host sees that memory
  uint32_t staging_type = 0;
  uint64_t max_allocation = 0;
  uint32_t max_groups[2] = {};
  uint32_t max_group_threads = 0;
  bool is_cpu = false;
  std::string name;  ///< each adapter's own
  Abilities abilities;

  runtime::Target target() const;
};

/// The devices with everything that Quern needs; for the others `why` gets a line each.
std::vector<Adapter> adapters(const Instance& instance, std::string& why);
/// A logical device with one queue and all features on that the adapter offers and Quern uses.
VkDevice create_device(const Instance& instance, const Adapter& adapter);

}  // namespace quern::vulkan
