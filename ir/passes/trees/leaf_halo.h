#pragma once
// The elements that a loop over a tree reads around its own one, cell by cell in arrays: leaf staging
// with a halo.
#include <set>
#include <utility>
#include <vector>

#include "ir/passes/trees/leaf_reads.h"

namespace quern::ir {

class LeafHalo {
 public:
  /// Of the reads around the own element in the body of a loop over `field` all are taken, unless
  /// something in the body writes what they read, or the arrays would be too large.
  LeafHalo(Kernel& kernel, TreeParts& parts, Builder& b, uint32_t field, const Region* body,
           bool racing);

  /// What the arrays hold elements of.
  std::vector<std::pair<Part, Type>> parts() const;
  /// The arrays, where all cells of a chunk share them.
  void declare();
  /// Fills them for the cell in `slot` at `places`, its first element's position along each axis.
  void fill(Value* slot, std::span<Value* const> places);
  /// The reads, of an element that lies `along` each axis from the cell's first one, i64.
  void replace(std::span<Value* const> along);

 private:
  using Along = LeafReads::Along;
  using Direction = LeafReads::Direction;
  using Read = LeafReads::Read;
  /// A component's elements in the cell and around it, row-major.
  struct Array {
    Part part;
    Type elem = Type::none;
    Along before = {}, behind = {};  ///< elements of the next cells along each axis
    Along stride = {};
    uint64_t size = 0;
    std::set<Direction> cells;  ///< whose elements are read
    std::vector<Read> reads;
    Value* slot = nullptr;
  };

  void collect(const Region* body);
  bool is_written(const Region* body, Part part) const;
  void add(Array& array, const Read& read) const;
  bool measure(Array& array) const;
  void choose(std::vector<Array> found);
  void copy(const Array& array, const Direction& cell, Value* first);
  void copy_row(const Array& array, const Direction& cell, Value* first, uint32_t axis,
                std::vector<Value*>& from, Value* to);

  Kernel& kernel_;
  TreeParts& parts_;
  Builder& b_;
  const bool racing_;
  const LeafReads reads_;
  std::vector<Array> arrays_;
};

}  // namespace quern::ir
