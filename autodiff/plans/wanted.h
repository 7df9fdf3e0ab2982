#pragma once
// Which values of a piece of code going back through it wants.
#include <functional>
#include <unordered_set>
#include <vector>

#include "autodiff/plans/logged_reads.h"
#include "autodiff/plans/slopes.h"
#include "autodiff/primal/activity.h"

namespace quern::autodiff {

/// Of one region, or the two of a `while`, with what is inside.
class Wanted {
 public:
  /// `kernel`: whose regions they are, for its rules. `is_kept`: of an instruction directly in the
  /// last region, whether its results are kept where they are wanted. What those are computed from
  /// is not wanted for them. `passed_over`: nobody goes back through these.
  Wanted(const ir::Kernel& kernel, std::vector<const ir::Region*> regions, const Activity& active,
         const Slopes& slopes, const LoggedReads& logged,
         std::function<bool(const ir::Inst*)> is_kept,
         std::span<const ir::Inst* const> passed_over = {});

  bool operator()(const ir::Value* v) const { return wanted_.contains(v); }
  const std::vector<const ir::Value*>& kept() const { return kept_; }

 private:
  void seed(const ir::Inst* inst);
  void seed_operation(const ir::Inst* inst);
  void seed_applied(const ir::Inst* inst);
  void want(const ir::Value* v);
  void follow(const ir::Value* v);
  void follow_argument(const ir::Value* arg);
  void follow_result(const ir::Value* v);
  void want_put(const ir::Inst* put);
  void want_operands(const ir::Inst* inst, size_t first = 0);
  bool is_inside(const ir::Value* v) const;

  const ir::Kernel& kernel_;
  const std::vector<const ir::Region*> regions_;
  const Activity& active_;
  const Slopes& slopes_;
  const LoggedReads& logged_;
  const std::function<bool(const ir::Inst*)> is_kept_;
  std::unordered_set<const ir::Value*> wanted_;
  std::vector<const ir::Value*> open_, kept_;
  std::vector<const ir::Inst*> puts_;  ///< and what parallel loops reduce
};

/// Does anything go back through it: does a result vary, or does it write floats?
bool has_part(const ir::Inst* inst, const Activity& active);
/// The same of anything in the kernel.
bool has_part(const ir::Kernel& kernel, const Activity& active);

}  // namespace quern::autodiff
