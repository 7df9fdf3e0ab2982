#pragma once
// The elements that a loop over a tree reads around its own one, element by element: in the own cell
// or in one beside it, whose slots a table has (tree::neighbours), filled once before the loop.
#include "ir/passes/trees/leaf_reads.h"

namespace quern::ir {

class LeafNeighbours {
 public:
  /// Of a loop over `field` with this body, whose iterations make no cells.
  LeafNeighbours(Kernel& kernel, TreeParts& parts, Builder& b, uint32_t field, const Region* body);

  bool is_needed() const { return !around_.empty(); }
  /// Puts the neighbours of a cell into the table: of the one at place `cell` of the list, i64, in `slot`,
  /// whose first element is at `places`.
  void fill(Value* cell, Value* slot, std::span<Value* const> places);
  /// The reads, of the element that lies `along` each axis from the cell's first one, i32.
  void replace(Value* cell, std::span<Value* const> along);

 private:
  int64_t power(uint32_t axis) const;
  Value* entry(Value* cell, Value* direction);

  Kernel& kernel_;
  TreeParts& parts_;
  Builder& b_;
  const uint32_t field_;
  const LeafReads reads_;
  std::vector<LeafReads::Read> around_;
};

}  // namespace quern::ir
