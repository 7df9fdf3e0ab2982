#pragma once
// Which fields vary with those that a tape takes derivatives by.
#include <optional>
#include <unordered_set>
#include <vector>

#include "quern/runtime/observer.h"

namespace quern::autodiff {

class Varying {
 public:
  /// All fields do.
  Varying() = default;
  /// These do, and what launches compute of them.
  explicit Varying(std::span<const std::shared_ptr<runtime::Storage>> fields);
  void add(const runtime::Storage& field);

  using Fields = std::vector<std::shared_ptr<runtime::Storage>>;
  /// Of each argument of a launch: has it adjoints, as a float that varies when it is read, or is
  /// written by what may? None where nothing varies. What it writes varies from then on; what did
  /// not before is added to `begun`: going back past the launch its adjoints are those of a
  /// constant.
  std::vector<bool> inputs(const runtime::LaunchEvent& event, Fields& begun);
  /// What it writes may vary, whatever it reads.
  void add_written(const runtime::LaunchEvent& event);

 private:
  bool has(const runtime::Storage& field) const;
  std::optional<std::unordered_set<uint64_t>> memory_;  ///< by number; none: any
};

}  // namespace quern::autodiff
