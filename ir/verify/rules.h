#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/text/names.h"

namespace quern::ir::text {

/// Collects what is wrong with one root region.
class Findings {
 public:
  static constexpr size_t most = 100;

  Findings(std::vector<std::string>& out, const Region* root, std::string where)
      : out_(out), root_(root), where_(std::move(where)) {}

  void add(const std::string& message);
  void add(const Inst* inst, const std::string& message);
  /// The instruction as messages name it.
  std::string named(const Inst* inst);
  size_t count() const { return count_; }

 private:
  std::vector<std::string>& out_;
  const Region* root_;
  std::string where_;
  std::unique_ptr<Names> names_;  // made when there is something to say
  size_t count_ = 0;
};

/// What the rules know of the place they look at.
struct Place {
  const Kernel& kernel;
  Findings& findings;
  uint8_t at;  ///< one of namespace level
  const Region* root;
  const Task* task = nullptr;        ///< the task of a body or domain
  const Function* callee = nullptr;  ///< the function whose body it is
};

/// The rules of operations for every instruction of a root whose structure is sound: types,
/// numbers, levels.
void check_rules(const Place& place);

/// Does `region` end in a yield of values of `types`, as region `number` of `owner` wants? Exits
/// satisfy their owner.
void check_yield(const Place& place, const Region* region, std::span<const Type> types,
                 std::string_view owner, std::optional<size_t> number = std::nullopt);

}  // namespace quern::ir::text
