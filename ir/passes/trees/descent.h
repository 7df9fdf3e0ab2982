#pragma once
// The way from indices down a tree to an element, as code.
#include "ir/passes/trees/entries.h"

namespace quern::ir {

/// Emits, at the builder's point, what leads to an element of a field on a tree.
class Descent : TreeCode {
 public:
  /// `reports`: checks tell where there is no cell to be had.
  Descent(Kernel& kernel, TreeParts& parts, uint32_t field, Builder& b, bool reports = true)
      : TreeCode(kernel, parts, field, b, reports), entries_(kernel, parts, field, b, reports) {}

  /// Where indices lead, level by level.
  struct Path {
    std::vector<Value*> key;       ///< of a hashed root's child
    std::vector<Value*> children;  ///< of each other pool's: its number within its cell, i64
  };
  Path path(std::span<Value* const> indices) { return path_at(positions(indices)); }
  /// The same for positions along the axes, which are indices of a field that is not shifted.
  Path path_at(std::span<Value* const> positions);

  /// The slot of the last pool's cell, u32; no_cell where there is none.
  Value* cell(const Path& path, bool racing) { return descend(path, racing).slot; }
  /// The same, of a cell that is there then, where one is to be had; not of trees with lists.
  Value* claim_cell(const Path& path) { return descend_claiming(path).slot; }
  /// Where in its cell of the last pool an index leads along an axis: from 0, unsigned.
  Value* digit(uint32_t axis, Value* index);

  struct Element {
    Value* number = nullptr;  ///< i64
    // ---- where the last pool has lists
    Value* list = nullptr;   ///< its number, i64
    Value* place = nullptr;  ///< in it, u32
  };
  /// The element; a background's where there is none. `racing`: iterations that run now may make it.
  Element find(const Path& path, bool racing);
  /// Is there one? b1.
  Value* is_active(const Path& path, bool racing);
  /// A box with indices in it in which nothing is active: one element where its cell is there, else all
  /// of the largest cell that is not.
  struct Box {
    Value* active = nullptr;  ///< is the element at the indices? b1; the box is empty then
    struct Axis {
      Value *before = nullptr, *behind = nullptr;  ///< of the indices: elements of the box, i32
    };
    std::vector<Axis> axes;
  };
  Box empty_box(std::span<Value* const> indices, bool racing);
  /// The element, which is active then. Where no cell is left for it a check fails, unless the tree's
  /// state is to tell of that alone.
  Element claim(const Path& path);
  /// Is the claimed element one of a cell that was to be had? Null: always.
  Value* is_found(Value* number);
  struct Appended {
    Value* place = nullptr;   ///< in the list, u32
    Value* number = nullptr;  ///< of the element, i64
  };
  /// The next place of the list that the path leads into, whose element is active then. A check fails
  /// where the list has `end` elements, and it stays as it is: tree::no_place, an element that nobody
  /// reads.
  Appended append(const Path& path, Value* end);
  /// A check that the element of a field of cells, at these indices, is there.
  void expect_cell(Value* there, std::span<Value* const> indices);
  /// How many elements the list has that the path leads into, u32.
  Value* length(const Path& path, bool racing);
  /// Has the element, which is active, end with the task.
  void end(const Element& element);
  /// The element, whose cell is there, is active then; not of trees with lists.
  void mark_active(Value* number);
  /// A child of the last pool's cell in `slot`.
  Element child(Value* slot, Value* number);
  /// Was it active when the lists of cells were made, as far as it has not the activity of its cell?
  /// Null: it has.
  Value* is_listed(const Element& element);

 private:
  struct End {
    Element element;
    Value* slot = nullptr;  ///< of its cell; null: the root
  };
  std::vector<Value*> positions(std::span<Value* const> indices);
  template <class Root, class Step>
  End descend(const Path& path, Root&& root, Step&& step);
  End descend(const Path& path, bool racing, std::vector<Value*>* slots = nullptr);
  End descend_claiming(const Path& path);
  Value* position(uint32_t axis, Value* index);
  Value* unsigned_position(Value* position);
  Value* is_active(const End& end, bool racing);
  std::vector<int64_t> extents(uint32_t axis) const;
  Value* below(Value* slot, size_t pool, Value* child);
  void tell_list(Element& element, Value* chunk, Value* child);
  Value* claim_cell(size_t pool, Value* number);
  Value* take_own_cell(size_t pool, Value* number);
  void own_cell(size_t pool, Value* own, Value* number);
  Value* take_cell(size_t pool, Value* number, Value* known);
  Value* lose_cell(size_t pool, Value* number, Value* known);
  Value* taken_cell(uint32_t table, uint32_t ring, Value* number, Value* known, size_t pool,
                    Value* mine);
  void lengthen(const Element& element);
  void claim_chunks(const Element& element, Value* first);
  void unmask(Value* element);
  Value* is_set(uint32_t bits, Value* element, bool racing);
  Value* is_short(uint32_t lengths, const Element& element, bool racing);
  std::pair<Value*, Value*> bit(Value* element);

  Entries entries_;
};

}  // namespace quern::ir
