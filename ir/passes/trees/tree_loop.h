#pragma once
// A loop over a field on a tree as one over cells of its last pool.
#include <optional>
#include <set>

#include "ir/passes/trees/leaf_neighbours.h"

namespace quern::ir {

/// The element that an iteration is at.
struct Own {
  uint32_t field = 0;  ///< that the loop names
  std::vector<Value*> indices;
  Descent::Element element;
};

class TreeLoop {
 public:
  TreeLoop(Kernel& kernel, TreeParts& parts, Builder& b, uint32_t field)
      : kernel_(kernel),
        parts_(parts),
        b_(b),
        field_(field),
        leaf_(kernel.bindings[field].layout.pools.back()) {}

  /// The body of a loop over cells and the numbers of their children, one element a time. `racing`:
  /// iterations make cells of the tree.
  Region* of_elements(Region* old, bool racing);
  /// The body of a loop over cells that is to run before that of elements. Null: there is none.
  Region* before_elements();

  /// May an iteration take a cell? Not where cells hold chunks of lists, or are so large that few threads would have work, nor
  /// where reductions have an order of 1,024 iterations that no number of cells makes.
  bool can_take_cells(const Task& task) const;
  /// The body of a loop over cells. Loops with constant bounds run what is active in a cell, in the
  /// order of its children; the innermost ones are walks, and have a word for which of their rounds
  /// are active. Reads around the own element come of arrays (LeafHalo), which are declared in front of
  /// `loop`. What counts elements in the task goes on doing so: `iteration`, `begin` and `end`, the
  /// grain of ordered reductions, the block; so does what counts an element's random numbers.
  /// `racing`: iterations make cells of the tree.
  Region* of_cells(Region* old, Task& task, Inst* loop, bool racing);

  /// Failed checks tell the number of their element, as loops over elements do; where all else of the
  /// task is done.
  void number_checks();
  /// Has a loop over cells name a later cell's lines of memory; where all else of the task is done.
  void look_ahead();

  /// In the body that was made.
  const Own& own() const { return own_; }

 private:
  /// A loop of `count` rounds: children of `stride` numbers from each other, `step` elements apart.
  struct Rounds {
    uint32_t axis = 0;
    int64_t count = 1, stride = 1, step = 1;
  };
  class Nest;

  std::vector<Rounds> rounds() const;
  void load_cell(Value* cell);
  Value* offset_of(Value* child, uint32_t axis);
  Value* take_indices(Region* old, std::span<Value* const> positions, Value* active);
  void run_where(Value* active, Region* old);
  using OwnPart = std::pair<Part, Type>;
  std::set<OwnPart> own_parts(Region* old) const;
  struct Lines;
  std::vector<Lines> touched_lines() const;
  Value* element_number();
  void count_elements(Task& task, const Inst* loop);
  void count_calls(Region* old, const std::vector<Inst*>& calls);

  Kernel& kernel_;
  TreeParts& parts_;
  Builder& b_;
  const uint32_t field_;
  const Placement::Pool leaf_;
  Value *slot_ = nullptr, *first_ = nullptr;  ///< of the cell: its slot, its first element's number
  std::vector<Value*> places_;                ///< that one's position
  std::set<OwnPart> touched_;                 ///< in each cell
  Region* rounds_body_ = nullptr;             ///< of the innermost loop over a cell
  Value* child_ = nullptr;                    ///< that it is at; null: the only one
  Inst* filled_ = nullptr;  ///< behind it all is there that a cell's elements want
  /// One of the outermost loop over a cell: behind `start` its children's first number in the cell is
  /// there. Null: there is only one loop.
  struct Round {
    Inst* start = nullptr;
    Value* first = nullptr;
    int64_t children = 0;
  };
  Round round_;
  Own own_;
  std::optional<LeafNeighbours> neighbours_;
};

}  // namespace quern::ir
