#pragma once
// The entries of a hashed root, as code.
#include "ir/passes/trees/tree_code.h"

namespace quern::ir {

/// Emits, at the builder's point, what leads from a key to its entry (quern/ir/trees.h).
class Entries : TreeCode {
 public:
  Entries(Kernel& kernel, TreeParts& parts, uint32_t field, Builder& b, bool reports)
      : TreeCode(kernel, parts, field, b, reports) {}

  /// The words of the key, u32 and not 0, of a child at these coordinates along the axes, u32 or u64.
  std::vector<Value*> key(std::span<Value* const> coordinates);
  /// The number of the entry that has the key, i64; tree::no_entry: none has.
  Value* find(std::span<Value* const> key, bool racing);
  /// The same; one has it then. tree::lost_entry: none was left, which a check reports.
  Value* claim(std::span<Value* const> key);

 private:
  Value* count();
  template <class Compare>
  Value* probe(std::span<Value* const> key, Compare&& compare);
  Value* match(std::span<Value* const> key, size_t from, Value* first);
};

}  // namespace quern::ir
