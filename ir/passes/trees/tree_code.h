#pragma once
// What code on a tree's parts is made of.
#include "ir/passes/lower/digits.h"
#include "ir/passes/trees/tree_parts.h"
#include "quern/ir/trees.h"

namespace quern::ir {

/// Emits, at the builder's point, accesses of the parts of the tree that a field is on.
class TreeCode {
 protected:
  TreeCode(Kernel& kernel, TreeParts& parts, uint32_t field, Builder& b, bool reports)
      : kernel_(kernel),
        parts_(parts),
        b_(b),
        field_(field),
        reports_(reports),
        pools_(kernel.bindings[field].layout.pools) {}

  Value* u32(int64_t v) { return b_.integer(Type::u32, v); }
  /// An element of a part; `racing`: other iterations may write it now.
  Value* load(uint32_t part, Value* at, bool racing);
  Value* atomic(AtomicOp op, uint32_t part, Value* at, std::initializer_list<Value*> values);
  /// Where a word of a pool stands in the tree's state.
  Value* word(size_t pool, uint32_t which);
  /// Sets bits. Most are set already: a read is cheaper than an atomic.
  void mark(uint32_t part, Value* at, Value* bits);
  /// The lists of cells are to be made anew.
  void mark_changed();
  /// A check of which nobody is told where there is no room, but the tree's state.
  void check(Value* ok, const std::string& text, const std::vector<Value*>& told);

  template <class F>
  void inside(Region* region, F&& emit) {
    Region* around = b_.region();
    Inst* point = b_.point();
    b_.at_end(region);
    emit();
    point ? b_.before(point) : b_.at_end(around);
  }
  /// Runs what `emit` emits where the condition holds.
  template <class F>
  void where(Value* condition, F&& emit) {
    Inst* branch = b_.if_(condition);
    inside(branch->region(0), [&] {
      emit();
      b_.yield();
    });
    inside(branch->region(1), [&] { b_.yield(); });
  }

  Kernel& kernel_;
  TreeParts& parts_;
  Builder& b_;
  const uint32_t field_;
  const bool reports_;
  const std::vector<Placement::Pool> pools_;
};

}  // namespace quern::ir
