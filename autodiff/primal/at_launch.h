#pragma once
#include <map>
#include <optional>
#include <span>

#include "quern/ir/ir.h"
#include "quern/runtime/launch.h"

namespace quern::autodiff {

/// What of a kernel is known before a launch: integers made of constants, scalars that are passed
/// and extents, and so which indices a loop has. Without arguments: before any launch.
class AtLaunch {
 public:
  explicit AtLaunch(std::span<const runtime::Argument> arguments) : arguments_(arguments) {}

  std::optional<int64_t> number(const ir::Value* v);
  /// lo <= index < hi
  struct Bounds {
    int64_t lo = 0, hi = 0;
    int64_t rounds() const { return hi - lo; }
  };
  /// Of the index of a `loop` or `parallel`, from its least to its last; none for other values, for
  /// a loop over a field on a tree, and where there are more rounds than an int64_t counts.
  std::optional<Bounds> bounds(const ir::Value* index);

 private:
  std::optional<ir::Bits> value(const ir::Value* v, int depth);
  std::optional<ir::Bits> computed(const ir::Inst* inst, int depth);
  const runtime::Storage* field(uint32_t binding) const;

  std::span<const runtime::Argument> arguments_;
  std::map<const ir::Value*, std::optional<ir::Bits>> known_;
};

}  // namespace quern::autodiff
