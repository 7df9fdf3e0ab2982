#pragma once
#include <unordered_map>
#include <unordered_set>

#include "quern/ir/ir.h"

namespace quern::autodiff {

/// How often an instruction of a kernel runs: does that follow from integers alone, which nothing
/// in the kernel writes? Then it is the same wherever it is computed, however floats are rounded
/// there.
class RowCounts {
 public:
  explicit RowCounts(const ir::Kernel& kernel);
  /// Of a loop how many rounds it has, too.
  bool is_by_integers(const ir::Inst* inst);

 private:
  bool are_bounds(const ir::Inst* inst);
  bool is_integer(const ir::Value* v);
  bool is_carried_by(const ir::Inst* loop, const ir::Value* v);
  bool is_computed(const ir::Value* v);

  const ir::Kernel& kernel_;
  std::unordered_set<uint32_t> written_;  ///< classes of fields that may overlap
  std::unordered_map<const ir::Value*, bool> known_;
};

}  // namespace quern::autodiff
