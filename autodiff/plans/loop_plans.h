#pragma once
// How one goes back through loops and branches: what of them is kept, and what is computed again.
//
// Going back through a region wants some of its values: those that derivatives are made of, the
// indices of elements, conditions, and what these are computed from ("to be recorded", Hascoët,
// Naumann and Pascual, Future Generation Computer Systems 21(8), 2005). Of a loop that is gone back
// through from its last round on, each round keeps what it began with, as far as that is wanted,
// and results that take more to compute again than to keep (costs.h). All else is computed again,
// and where each iteration has a row of its own, results that are the same for all of them. A
// branch passes on what is worth keeping of its inside, likewise.
//
// What a round began with is not kept where it follows from what the next one began with, exactly
// (inverses.h): integers that count, are added to, are multiplied by odd constants, and so on, but
// no floats. Going back finds one from the other; what the last round began with is kept once.
//
// A loop of sums is not gone back through from its end: where each value that varies from round to
// round is only added to, all rounds have the same adjoint of it, and where no element is changed
// and read, the order of rounds does not matter. Its rounds are computed once more in their own
// order, each gone back through at once, and nothing is kept. Where a kernel yields the primal's
// values besides, such loops have been run before: they keep what the math library gave.
//
// Of a loop whose rounds replace what it carries or pass it on, as one that looks for the least of
// many, the last round that replaced it is gone back through, and no other (replacements.h).
//
// QUERN_DUMP=derivatives prints what was decided.
#include <string>
#include <unordered_map>
#include <vector>

#include "autodiff/plans/augmentable.h"
#include "autodiff/plans/logged_reads.h"
#include "autodiff/plans/replacements.h"
#include "autodiff/plans/row_counts.h"
#include "autodiff/plans/slopes.h"
#include "autodiff/primal/activity.h"
#include "ir/analysis/uniformity.h"

namespace quern::autodiff {

struct LoopPlan {
  enum Way : uint8_t {
    computed,        ///< nothing inside has a part: its values are enough
    in_order,        ///< of sums
    backwards,       ///< from the last round on
    last_replacing,  ///< of one round alone
  };
  Way way = computed;
  std::vector<Replacement> replacements;  ///< by that round
  bool is_in_rows = false;                ///< what is kept; else in arrays of the iteration's own
  uint64_t rounds = 0;                    ///< of arrays: elements
  double cost = 0;                        ///< of computing a round again, in additions
  std::vector<bool> carried;              ///< of each carried value: is it kept?
  std::vector<size_t> inverted;           ///< carried values that are found instead, in this order
  std::vector<const ir::Value*> values;   ///< kept beside, made directly in the body
  /// Of what is kept, in order: carried values, then the others. None: no round keeps anything.
  std::vector<ir::Type> types;
  uint64_t bytes() const;  ///< of what a round keeps
};

/// Is QUERN_DUMP=derivatives asked for?
bool are_plans_dumped();
/// Prints that of the place, if so.
void dump_plan(Loc at, const std::string& what);

class LoopPlans {
 public:
  /// Of a kernel at level structured. `logged` are found again, not computed. `augment`: what the
  /// primal's launch may keep.
  LoopPlans(const ir::Kernel& kernel, const Activity& active, const Slopes& slopes,
            const LoggedReads& logged, Augment augment);
  /// Who goes back does all that the primal does, too: what the math library gives in loops of sums
  /// that stand directly in an iteration, with a known number of rounds, is kept in arrays, in 16 KB
  /// for all of them together.
  void keep_library_results();

  const LoopPlan& of(const ir::Inst* loop) const { return plans_.at(loop); }
  /// What a region of a branch passes on.
  const std::vector<const ir::Value*>& kept_in(const ir::Region* branch) const;
  /// Is it worth asking whether any of the loop's results has an adjoint, as each goes only to
  /// where one of several values is chosen?
  bool is_choice(const ir::Inst* loop) const;
  /// May it depend on how floats are rounded how many rows loops and the log take, or how many
  /// rounds a While that is gone back through?
  bool rows_vary() const { return rows_vary_; }

 private:
  void make(const std::vector<const ir::Inst*>& structured);
  LoopPlan plan(const ir::Inst* loop);
  /// Where results are kept beside what loops carry.
  enum Beside : uint8_t { nowhere, in_arrays, in_rows };
  void keep_wanted(LoopPlan& plan, const ir::Inst* loop, Beside where);
  bool keeps_by_primal(LoopPlan& plan, const ir::Inst* loop);
  void keep_library_results(LoopPlan& plan, const ir::Inst* loop, uint64_t most_bytes);
  bool is_shared(const ir::Value* v);
  std::vector<Replacement> replacements(const ir::Inst* loop) const;
  bool is_sum(const ir::Inst* loop) const;
  bool is_any_order(const ir::Inst* loop) const;
  bool varies(const ir::Inst* loop, size_t carried) const;
  bool is_run_again(const ir::Inst* inst) const;
  bool is_chosen_there(const ir::Use* use) const;
  bool may_keep(const ir::Value* v, double cost) const;
  std::string text(const ir::Inst* inst) const;

  const ir::Kernel& kernel_;
  const Activity& active_;
  const Slopes& slopes_;
  const LoggedReads& logged_;
  Augment augment_;
  RowCounts counts_;
  std::unordered_set<const ir::Value*> are_slopes_;
  std::unordered_map<const ir::Inst*, LoopPlan> plans_;
  std::unordered_map<const ir::Inst*, ir::Uniformity>
      uniform_;  ///< in a parallel loop's iterations
  std::unordered_map<const ir::Region*, std::vector<const ir::Value*>> branches_;
  bool rows_vary_ = false;
};

}  // namespace quern::autodiff
