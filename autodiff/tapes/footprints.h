#pragma once
// Which elements of fields a launch reads and writes, one access after another.
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "quern/ir/ir.h"
#include "quern/runtime/launch.h"

namespace quern::autodiff {

/// Elements whose indices are lo <= index < hi along each axis, of one component.
struct Box {
  uint32_t component = 0;
  std::vector<std::pair<int64_t, int64_t>> axes;
  bool operator==(const Box&) const = default;
  bool holds(const Box& other) const;
};

struct Footprint {
  uint32_t binding = ir::no_binding;
  Loc loc;
  bool writes = false;  ///< else it reads any elements
  Box box;              ///< of a write: no other elements
  bool always = false;  ///< each of them
  bool clears = false;  ///< a write that ends all elements of a field on a tree
};

/// In program order: an access stands behind what is certainly done before it. A loop's reads see
/// none of what its later rounds write. To loop over a field on a tree reads it, as to ask what is
/// active does; to make elements active, or end them, writes it. Of a kernel at level structured,
/// optimised. Linear.
std::vector<Footprint> footprints_of(const ir::Kernel& kernel,
                                     std::span<const runtime::Argument> arguments);

}  // namespace quern::autodiff
