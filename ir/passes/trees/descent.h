#pragma once
// The way from indices down a tree to an element, as code.
#include "ir/passes/trees/tree_parts.h"

namespace quern::ir {

/// Emits, at the builder's point, what leads to an element of a field on a tree.
class Descent {
 public:
  Descent(Kernel& kernel, TreeParts& parts, uint32_t field, Builder& b, bool reports = true)
      : kernel_(kernel),
        parts_(parts),
        b_(b),
        field_(field),
        reports_(reports),
        pools_(kernel.bindings[field].layout.pools) {}

  /// For these indices: the number of the child within its cell, i64, one for each pool.
  std::vector<Value*> children(std::span<Value* const> indices);

  /// The element's number; that of a background's where there is none. `racing`: iterations that
  /// run now may make it.
  Value* find(std::span<Value* const> children, bool racing);
  /// Is there one? b1.
  Value* is_active(std::span<Value* const> children, bool racing);
  /// The element's number, which is active then. Where no cell is left for it a check fails, unless
  /// the tree's state is to tell of that alone.
  Value* claim(std::span<Value* const> children);
  /// Has the element end with the task.
  void end(Value* element);
  /// Was it active when the lists were made, as far as the mask tells? Null where there is none.
  Value* is_listed(Value* element);

 private:
  Value* below(Value* slot, size_t pool, Value* child);
  Value* number_from(const std::vector<Value*>& slots);
  Value* claim_cell(size_t pool, Value* number);
  void take_own_cell(Region* region, size_t pool, Value* number);
  void own_cell(size_t pool, Value* own, Value* number);
  void take_cell(Region* region, size_t pool, Value* number, Value* known);
  void taken_cell(Region* region, uint32_t table, uint32_t ring, Value* number, Value* known,
                  size_t pool, Value* mine);
  void unmask(Value* element);
  Value* is_set(uint32_t bits, Value* element, bool racing);
  Value* load(uint32_t part, Value* at, bool racing);
  Value* atomic(AtomicOp op, uint32_t part, Value* at, std::initializer_list<Value*> values);
  void mark(uint32_t part, Value* at, Value* bits);
  void mark_changed();
  Value* word(size_t pool, uint32_t which);
  std::pair<Value*, Value*> bit(Value* element);
  uint32_t out_of_cells();

  Kernel& kernel_;
  TreeParts& parts_;
  Builder& b_;
  const uint32_t field_;
  const bool reports_;
  const std::vector<Placement::Pool> pools_;
};

/// Quotient and remainder of an unsigned value by a constant.
std::pair<Value*, Value*> divide(Builder& b, Value* v, uint32_t by);

}  // namespace quern::ir
