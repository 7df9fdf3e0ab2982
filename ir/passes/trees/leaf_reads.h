#pragma once
// What a loop over a tree reads around its own element, and the cells that that is in.
#include <array>
#include <set>
#include <vector>

#include "ir/analysis/affine.h"
#include "ir/passes/trees/descent.h"

namespace quern::ir {

class LeafReads {
 public:
  using Along = std::array<int64_t, Placement::max_axes>;
  using Direction =
      std::array<int8_t, Placement::max_axes>;  ///< of a cell: -1, 0 or 1 along an axis
  struct Read {
    Inst* inst;
    Along offset = {};
  };

  LeafReads(Kernel& kernel, TreeParts& parts, Builder& b, uint32_t field);

  /// Reads in the body of a loop over the field, whose indices are the body's arguments, of fields with
  /// the same elements, at own indices and constants up to a cell's extents, not all 0.
  std::vector<Read> around(const Region* body) const;
  /// Cells that hold what lies so far from elements of a cell.
  std::set<Direction> cells_of(const Along& offset) const;
  /// The cell that lies there from the one whose first element is at `places`; that of the background
  /// where there is none, as outside of the tree.
  Value* slot_of(const Direction& cell, std::span<Value* const> places, bool racing) const;
  /// The number, in a cell, of the child that lies so far along each axis, i64.
  Value* child_at(std::span<Value* const> along) const;

  const uint32_t rank;
  const Placement::Pool leaf;
  Along extent = {};  ///< of a cell

 private:
  bool offset_of(AffineForms& forms, const Inst* load, const Region* body, Along& offset) const;

  Kernel& kernel_;
  TreeParts& parts_;
  Builder& b_;
  const uint32_t field_;
  bool is_endless_ = false;
  Along whole_ = {};  ///< extents of the tree
};

}  // namespace quern::ir
