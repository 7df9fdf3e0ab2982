#pragma once
// The form of a walk whose iterations can be taken through its inner loops together: which of its
// loops and branches all iterations share, and what each iteration does between them.
//
// Iterations share a loop whose bounds, and a branch whose condition, are the same for all of them:
// each round, each branch can be run for a whole strip of iterations. The code between is straight,
// or holds control flow that an iteration takes alone.
//
// Expects: level lowered, simplified, hoisted. Linear, times the depth of loops and the number of packs.
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/analysis/affine.h"
#include "ir/analysis/uniformity.h"
#include "quern/ir/ir.h"

namespace quern::ir {

/// How many rounds a loop by steps of 1 has, where that is constant.
std::optional<int64_t> constant_rounds(const Inst* loop);

/// Elements that the iterations of a strip read again and again, and that lie far apart from one
/// iteration to the next: a strip copies them side by side before.
struct Pack {
  /// The rounds of a loop around the reads on whose number the element depends.
  struct Axis {
    int64_t factor;  ///< bytes from round to round
    int64_t first, count;
    bool operator==(const Axis&) const = default;
  };
  const Inst* read = nullptr;      ///< the first one; others have the same form
  Affine base;                     ///< of its address, without the axes
  std::vector<const Inst*> loops;  ///< of the first read, one an axis
  std::vector<Axis> axes;
  std::vector<const Inst*> may_be_idle;  ///< loops around: without rounds of each nothing is read
  int64_t elements() const;
};

class Nest {
 public:
  struct Block;
  struct Piece {
    size_t number = 0;
    /// Local variables and what all iterations share: made once, before the rest.
    std::vector<Inst*> common;
    std::vector<Inst*> code;  ///< run by each iteration
    size_t updates = 0;       ///< of those
    /// The loop or branch behind it that all take together, or where any takes it, and its regions.
    /// None: the piece was long enough, or is the last of its block.
    Inst* inner = nullptr;
    std::vector<Block> blocks;
  };
  struct Block {
    const Region* region = nullptr;
    std::vector<Piece> pieces;
  };

  Nest(const Kernel& kernel, Inst* walk);

  /// Has the walk the form, and does it pay to take iterations together?
  bool pays() const { return pays_; }
  const Block& body() const { return body_; }
  /// The piece of an instruction that stands in a block; none of one outside of the walk, or in what
  /// an iteration takes alone.
  std::optional<size_t> piece_of(const Inst* inst) const;

  /// The `slot`s in blocks: local variables of an iteration.
  const std::vector<const Inst*>& locals() const { return locals_; }
  /// An atomic whose location all iterations share and nothing else looks at, so that the strip may
  /// combine its contributions first (rule 10 of docs/semantics.md); or a branch that all take the
  /// same way, of nothing but such atomics.
  bool is_update(const Inst* inst) const { return updates_.contains(inst); }
  bool has_updates() const { return !updates_.empty(); }
  /// A branch with one region of code, which is run for the strip where any of its iterations takes it:
  /// what it reads, or updates, is the same for all that do. The number of the region.
  std::optional<size_t> taken_by_any(const Inst* branch) const;
  /// Of a loop that all take together: what it carries that is the same for all iterations.
  bool is_shared_carried(const Value* v) const { return shared_carried_.contains(v); }
  /// A loop of few rounds, to be written out in the code of an iteration.
  bool is_unrolled(const Inst* loop) const { return unrolled_.contains(loop); }
  /// Does no round of an innermost loop need what another one has put? Then one iteration alone can take
  /// its rounds by vectors.
  bool has_rounds_apart();
  /// Is there code with loops of its own? The host may end it early.
  bool has_loops_alone() const { return has_loops_alone_; }

  const std::vector<Pack>& packs() const { return packs_; }
  /// What a read finds in a pack: at the rounds of these loops.
  struct Packed {
    size_t pack;
    std::vector<const Inst*> loops;
  };
  const Packed* packed(const Inst* read) const;

 private:
  bool plan(const Region* region, Block& block, bool in_rounds);
  bool take(Inst* inst, Block& block, bool in_rounds);
  bool take_control(Inst* inst, Block& block, bool in_rounds);
  bool uses_carried(const Inst* inst) const;
  void next_piece(Block& block);
  void add_update(const Inst* inst, Piece& piece);
  bool is_shared(const Inst* inst);
  bool can_share(const Inst* control);
  bool is_common(const Inst* control);
  void share_carried(const Inst* loop);
  static bool is_straight(const Inst* inst);
  size_t written_out(const Inst* loop) const;
  void unroll(const Inst* loop);
  bool is_simple(const Inst* inst) const;
  bool is_choice_of_updates(const Inst* branch);
  std::optional<size_t> shares_inside(const Inst* branch);
  bool is_shared_read(const Inst* inst);
  bool combines(const Inst* rmw);
  bool keeps_order() const;
  /// Of a round: its float operations, and how many must be there to pay for accesses far apart from
  /// one iteration to the next.
  struct Work {
    double price = 0, arithmetic = 0;
  };
  bool touches_neighbours(const Block& block, Work& around, bool in_rounds);
  bool is_far(const Inst* access);
  std::optional<int64_t> stride_of(const Value* v);
  bool is_outside(const Value* v) const;
  bool are_rounds_apart(const Block& round, const Value* index);
  bool pack(const Inst* read);
  std::optional<Pack::Axis> rounds_of(const Inst* loop,
                                      const std::vector<const Inst*>& around) const;

  const Kernel& kernel_;
  const Region* region_;
  Uniformity uniform_;
  AffineForms forms_{AffineForms::through_conversions};
  Block body_;
  bool pays_ = false, has_rounds_ = false, has_loops_alone_ = false;
  size_t pieces_ = 0;
  std::unordered_map<const Inst*, size_t> piece_of_;
  std::unordered_set<const Inst*> unrolled_, updates_;
  std::unordered_map<const Inst*, size_t> taken_by_any_;
  std::unordered_set<const Value*> carried_;  ///< by the walk, and what is made of it
  std::unordered_set<const Value*> shared_carried_;
  std::vector<const Inst*> locals_;
  std::unordered_set<uint64_t> written_;  ///< alias classes
  std::vector<Pack> packs_;
  std::unordered_map<const Inst*, Packed> packed_;
};

}  // namespace quern::ir
