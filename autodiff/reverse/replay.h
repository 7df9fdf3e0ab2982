#pragma once
// A kernel's values, computed again inside another kernel, without its effects. What it reads
// behind its own writes comes from the log (logged_reads.h).
//
// What is kept of a loop's rounds for who goes back through it is said by its plan (loop_plans.h).
// A loop with few rounds between constants keeps that in arrays of the iteration's own, unless the
// primal's launch has kept it (augmented.h). Of any other the rounds are counted first, by
// replaying the iteration, and kept in rows of a field that has as many as all iterations together
// take: each takes its rows by an atomic add to a cursor, so that none are lost or shared, whatever
// the number. Where all iterations have as many rounds, and that is known before the parallel loop,
// rows lie by round, then iteration: neighbours keep theirs side by side, and a round of more than
// a few begins a cache line.
//
// What is computed twice is the same twice, so that rounds are: where it may depend on floats how
// many are counted, operations are neither contracted nor reassociated, and sums have one order.
#include <unordered_map>
#include <unordered_set>

#include "autodiff/plans/kept_results.h"
#include "autodiff/plans/logged_reads.h"
#include "autodiff/plans/loop_plans.h"
#include "quern/ir/builder.h"

namespace quern::autodiff {

/// A loop whose rounds are kept in rows of a field, and what a row holds.
struct RoundsSite {
  const ir::Inst* loop = nullptr;
  std::vector<ir::Type> types;
  const ir::Inst* alike = nullptr;  ///< the parallel loop whose iterations all have as many rounds
  /// The primal's launch records it (augmented.h), so that it is not run again; and what is kept of
  /// its end, in an element for each iteration: those of its results that are used, what the last
  /// round began with of what is inverted, which round replaced what it carries.
  bool is_augmented = false;
  std::vector<ir::Type> ends = {};
};

/// Those of a kernel. Throws Error with the line of what cannot be computed
/// again: old values of atomics, changes of trees.
std::vector<RoundsSite> rounds_sites(const ir::Kernel& primal, const LoopPlans& plans,
                                     bool on_trees);

/// Of the number of a round, where it is noted which has replaced what the loop carries.
ir::Type round_type(const LoopPlan& plan);

/// Where they lie: bindings, by site. `ends` of those that have some; none where rounds are only
/// counted.
struct SiteFields {
  std::vector<uint32_t> rows = {}, ends = {};
  uint32_t cursors = ir::no_binding;
  std::vector<KeptResult> kept = {};  ///< by the augmented primal
};

[[noreturn]] void refuse(const ir::Inst* inst, const std::string& what, const std::string& advice);

class Replay {
 public:
  /// `fields` are empty where rounds are only counted.
  Replay(const ir::Kernel& primal, const LoggedReads& logged, const LoopPlans& plans,
         ir::Builder& b, const std::vector<RoundsSite>& sites, SiteFields fields)
      : primal_(primal),
        logged_(logged),
        plans_(plans),
        b_(b),
        sites_(sites),
        fields_(std::move(fields)) {}

  enum Mode {
    plain,       ///< the values alone
    counting,    ///< and how many rows each site takes
    totalling,   ///< and how many rows iterations of parallel loops take (count_all)
    recording,   ///< and what loops directly in it keep
    augmenting,  ///< the effects too, and what augmented sites keep
    logging      ///< and private reads of the log are logged
  };
  /// The region's instructions but those that have effects, unless `augmenting`, and its
  /// terminator.
  void region(const ir::Region* region, Mode mode);
  /// Counts the region's rows into new slots; comes back: i64 by site, null where it has none
  /// there.
  std::vector<ir::Value*> count(const ir::Region* region);
  /// The same, takes that many rows of each site, and replays the region recording into them.
  void record(const ir::Region* region);

  /// Logs what an iteration of a parallel loop reads of its own variables (LoggedRead::is_private).
  void log(const ir::Region* region);

  /// Parallel loops are not replayed from here on: who goes back through them computes what they
  /// reduce. Behind that `finish` replays what is made of it directly in the region.
  void leave_loops_out() { leaves_loops_out_ = true; }
  /// Sums whose order is free (free_sums.h).
  void regroup(std::unordered_set<const ir::Inst*> sums) { free_sums_ = std::move(sums); }
  void finish(const ir::Region* region);
  /// What the primal adds to this binding's element is added where an iteration, or what stands
  /// outside of all loops, is replayed first (at_once.h).
  void add_to(uint32_t number) { added_to_ = number; }

  /// Checks that the iterations together have taken no more rows than there are.
  void check_rows(ir::Kernel& kernel);

  /// Of a site whose rows are alike, behind a replay of the kernel's body: how many iterations have
  /// rows, and how many rows there are, i64.
  struct Alike {
    ir::Value *iterations, *rows;
  };
  Alike count_alike(const RoundsSite& site);
  Alike count_alike(const KeptResult& kept);
  /// Counts the rows that the kernel takes in all, parallel loops too: adds them to slots, by site.
  void count_all(const ir::Region* body, std::span<ir::Value* const> totals);

  /// As it was computed last.
  ir::Value* now(const ir::Value* v) const;
  void set(const ir::Value* v, ir::Value* to) { values_[v] = to; }
  /// What is replayed from here on has this value, however it is rounded this time; null: all is
  /// computed.
  void know(const ir::Value* v, ir::Value* to) {
    known_ = {v, to};
    if (v) values_[v] = to;
  }
  std::vector<ir::Value*> operands_now(const ir::Inst* inst) const;
  std::vector<ir::Value*> indices_now(const ir::Inst* inst) const;

  /// A region of a new instruction: `body` fills it, and yields. Arguments are those of `like`.
  template <class F>
  ir::Region* inside(const ir::Region* like, F&& body) {
    std::vector<ir::Type> types;
    for (const ir::Value& arg : like->args) types.push_back(arg.type);
    ir::Region* made = b_.make_region(std::span<const ir::Type>(types));
    for (size_t k = 0; k < types.size(); k++) values_[like->arg(k)] = made->arg(k);
    return fill(made, body);
  }
  template <class F>
  ir::Region* fill(ir::Region* made, F&& body) {
    ir::Region* around = b_.region();
    ir::Inst* point = b_.point();
    b_.at_end(made);
    body();
    point ? b_.before(point) : b_.at_end(around);
    return made;
  }
  /// A parallel loop like `inst`.
  template <class F>
  void parallel(const ir::Inst* inst, F&& body) {
    const std::vector<ir::Value*> operands = operands_now(inst);
    count_iterations(inst, operands);
    ir::Region* made = inside(inst->region(0), [&] {
      number_iteration(inst);
      body();
      b_.yield();
    });
    copy_parallel(inst, operands, made);
  }

  /// Of a loop that was recorded: how many rounds there were, i64.
  ir::Value* rounds(const ir::Inst* loop) const { return rounds_.at(loop); }
  /// Of a loop whose rounds replace what it carries (replacements.h) and that was recorded: the
  /// number of the last round that did, below 0 where none has.
  ir::Value* last_replacing(const ir::Inst* loop) const { return last_replacing_.at(loop); }
  /// What the loop kept of round number `round`, i64: of what it carried, which becomes arguments
  /// of its first region, and of what its body made, once that is replayed.
  /// From the last round on, one by one: what is not kept is found from what the round behind it
  /// began with (inverses.h).
  void restore(const ir::Inst* loop, ir::Value* round);
  /// What its body made in the round that its index says, once that is replayed.
  void restore_values(const ir::Inst* loop);
  /// As restore(), of what a While's last test was on.
  void restore_last_test(const ir::Inst* loop);
  /// The same of a branch, whose region is replayed next.
  void restore(const ir::Region* branch) { open_[branch] = {branch->parent, nullptr, true}; }

 private:
  void pass(const ir::Region* region, Mode mode);
  template <class F>
  void run_again(F&& replay);
  bool is_done(const ir::Inst* inst) const;
  bool reduces_here(const ir::Inst* reduce) const;
  bool adds_here(const ir::Inst* atomic) const;
  void replay(const ir::Inst* inst);
  /// Who goes back through a region replays what is inside once more, recording.
  Mode inner_mode() const { return mode_ == recording ? plain : mode_; }
  void total(const ir::Inst* inst);
  void branch(const ir::Inst* inst);
  void loop(const ir::Inst* inst);
  void while_loop(const ir::Inst* inst);
  void count_iterations(const ir::Inst* inst, std::span<ir::Value* const> operands);
  void number_iteration(const ir::Inst* inst);
  bool has_rows_alike(const ir::Inst* parallel) const;
  void place_iterations(const ir::Inst* parallel, std::span<ir::Value* const> operands);
  ir::Value* rounds_alike(const ir::Inst* loop);
  void copy_parallel(const ir::Inst* inst, std::span<ir::Value* const> operands, ir::Region* body);
  ir::Value* round_now(const ir::Inst* loop, std::span<ir::Value* const> bounds);
  void note_replacing(const ir::Inst* loop, ir::Value* round, ir::Value* last);
  bool keeps(const ir::Inst* loop) const;
  const KeptResult* kept_result(const ir::Value* v) const;
  ir::Value* place_of(const KeptResult& kept, ir::Value* element);
  bool replay_kept(const ir::Inst* inst);
  bool changes_others(const ir::Inst* loop) const;
  void keep_result(const KeptResult& kept, ir::Value* element, ir::Value* v);
  void keep_ends(const ir::Inst* loop, ir::Value* last);
  void restore_ends(const ir::Inst* loop);
  /// The number of the loop among the sites, or -1.
  int site_of(const ir::Inst* loop) const;
  void took(int site, ir::Value* rows);

  /// A region of which something is kept.
  struct Open {
    const ir::Inst* owner = nullptr;
    ir::Value* at = nullptr;  ///< of a loop: the element, or the row, of the round
    bool restores = false;    ///< else it keeps
  };
  void make_arrays(const ir::Inst* loop);
  /// The element, or the row: the last one where a launch has more rounds than were counted, which
  /// it reports.
  ir::Value* place_of(const ir::Inst* loop, ir::Value* round);
  void keep(const ir::Inst* loop, size_t number, ir::Value* at, ir::Value* v);
  ir::Value* kept(const ir::Inst* loop, size_t number, ir::Value* at, ir::Type type);
  void keep_carried(const ir::Inst* loop, ir::Value* at);
  void make_starts(const ir::Inst* loop);
  void put_starts(const ir::Inst* loop);
  void restore_kept(const ir::Inst* loop, ir::Value* round);
  void keep_or_restore(const Open& open, const ir::Inst* inst);

  const ir::Kernel& primal_;
  const LoggedReads& logged_;
  const LoopPlans& plans_;
  ir::Builder& b_;
  const std::vector<RoundsSite>& sites_;
  const SiteFields fields_;
  Mode mode_ = plain;
  const ir::Region* root_ = nullptr;  ///< what is replayed as a whole
  std::unordered_set<const ir::Inst*> free_sums_;
  uint32_t added_to_ = ir::no_binding;
  bool leaves_loops_out_ = false;
  bool runs_again_ = false;  ///< local variables too: private reads find in them what they found
  ir::ValueMap values_;
  std::pair<const ir::Value*, ir::Value*> known_ = {};
  std::span<ir::Value* const> totals_;  ///< of count_all
  std::vector<ir::Value*> most_;        ///< by site, slots: rows that one execution takes at most
  std::unordered_map<int, ir::Value*> first_row_;  ///< by site, i64, of the iteration
  /// Of parallel loops with rows alike: how many rows each round has, one for each iteration, and
  /// the number of the iteration at hand, i64.
  std::unordered_map<const ir::Inst*, ir::Value*> places_, iteration_;
  std::unordered_map<const ir::Inst*, std::vector<ir::Value*>> arrays_;
  /// Of carried values that are inverted, slots: what the round began with that was recorded or
  /// gone back through last.
  std::unordered_map<const ir::Inst*, std::vector<ir::Value*>> starts_;
  std::unordered_map<const ir::Region*, Open> open_;
  ir::ValueMap passed_on_;  ///< by branches
  std::unordered_map<const ir::Inst*, ir::Value*> rounds_, last_replacing_;
};

}  // namespace quern::autodiff
