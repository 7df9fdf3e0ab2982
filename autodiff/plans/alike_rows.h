#pragma once
// Rows that all iterations of a parallel loop take alike: as many each, known before the loop. Where iterations
// can go through their inner loops together they lie by row, then iteration, so that neighbours have theirs
// side by side and vectors take them at once; else by iteration, as caches like it.
#include <optional>

#include "autodiff/plans/row_counts.h"
#include "ir/analysis/uniformity.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

/// How many iterations a parallel loop between these bounds has, i64.
ir::Value* iterations_of(ir::Builder& b, const ir::Inst* parallel,
                         std::span<ir::Value* const> bounds);
/// The places that a row of so many iterations takes, i64: whole cache lines, but of few iterations, as
/// threads write side by side.
ir::Value* places_of(ir::Builder& b, ir::Value* iterations);

/// How many rounds a loop between these bounds, by this step, has, i64.
ir::Value* rounds_between(ir::Builder& b, std::span<ir::Value* const> bounds);

/// How often regions run in an iteration of a parallel loop.
class AlikeRows {
 public:
  /// `counts`: of the kernel.
  AlikeRows(const ir::Kernel& kernel, RowCounts& counts, const ir::Inst* parallel);

  /// Does the region run as often in all iterations, by integers that are known before the loop?
  bool knows(const ir::Region* region);
  /// Do all iterations take the same rounds of loops within loops, and local arrays that are not too long, so
  /// that a CPU may take them together (ir/passes/walks/nest.h)?
  bool may_go_together();
  /// How often, i64, made in front of the loop.
  ir::Value* count(ir::Builder& b, const ir::Region* region);

 private:
  using Chain = std::vector<const ir::Region*>;
  Chain chain_to(const ir::Region* region) const;
  bool shares(const ir::Inst* control);
  ir::Value* count_from(ir::Builder& b, const Chain& chain, size_t at);
  ir::Value* known(ir::Builder& b, const ir::Value* v);
  /// Does what decides how often the region runs come from the index?
  bool depends(const ir::Region* region, const ir::Value* index) const;

  RowCounts& counts_;
  const ir::Inst* parallel_;
  ir::Uniformity uniform_;
  std::optional<bool> together_;
  ir::ValueMap known_;  ///< of values of the loop, in front of it
};

}  // namespace quern::autodiff
