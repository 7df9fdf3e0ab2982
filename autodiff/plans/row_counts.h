#pragma once
#include <unordered_set>
#include <vector>

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
  using Values = std::vector<const ir::Value*>;
  static void add_bounds(const ir::Inst* inst, Values& open);
  bool are_integers(Values open);
  bool add_sources(const ir::Value* v, Values& open) const;
  bool add_sources_of_result(const ir::Value* v, Values& open) const;
  static void add_sources_of_argument(const ir::Value* v, Values& open);

  const ir::Kernel& kernel_;
  std::unordered_set<uint32_t> written_;                    ///< classes of fields that may overlap
  std::unordered_set<const ir::Value*> integers_, others_;  ///< as far as was asked
};

}  // namespace quern::autodiff
