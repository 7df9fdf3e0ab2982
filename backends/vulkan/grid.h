#pragma once
// The workgroups of a dispatch in two axes: one alone may reach no farther than 65,535.
#include <algorithm>

#include "quern/ir/abi.h"

namespace quern::vulkan {

struct Grid {
  uint32_t x = 0, y = 0;
};

/// At least `groups` workgroups of `group` invocations, where the device starts so many.
/// Invocations that stride over the iterations: that many or fewer, abi::max_threads at most.
/// Others: none (x is 0) where they are too many.
constexpr Grid spread(uint64_t groups, uint32_t group, const uint32_t (&most)[2], bool strides) {
  if (strides) groups = std::min(groups, ir::abi::max_threads / group);
  const uint64_t x = std::min<uint64_t>(groups, most[0]);
  if (strides) return {uint32_t(x), uint32_t(std::min<uint64_t>(groups / x, most[1]))};
  const uint64_t y = (groups + x - 1) / x;
  if (y > most[1]) return {};
  return {uint32_t(x), uint32_t(y)};
}

}  // namespace quern::vulkan
