#pragma once
// Which components of fields lie in the same place: fields and views of one memory, of which a
// launch may pass several.
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "quern/ir/ir.h"
#include "quern/runtime/launch.h"

namespace quern::autodiff {

class SamePlaces {
 public:
  /// All lie apart.
  SamePlaces() = default;
  /// As a launch of the kernel shows.
  SamePlaces(const ir::Kernel& kernel, std::span<const runtime::Argument> arguments);

  /// The first component whose elements, by the same indices, are those of this one.
  ir::Part first(ir::Part part) const;
  /// May elements of the one be elements of the other, by whatever indices?
  bool may_overlap(ir::Part a, ir::Part b) const;
  auto operator<=>(const SamePlaces&) const = default;

 private:
  uint32_t class_of(uint32_t binding) const;
  std::vector<uint32_t> classes_;         ///< of what is passed: in one class it may overlap
  std::map<ir::Part, ir::Part> earlier_;  ///< first() of those that are not their own
};

}  // namespace quern::autodiff
