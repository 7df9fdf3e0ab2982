#pragma once
#include <span>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::ir {

/// Puts before `inst` a check of its site, told `values`, and lets it happen only where `ok` holds.
/// Its results, or 0 where it did not happen, have taken over all uses; the first comes back.
Value* guard_access(Builder& b, Inst* inst, Value* ok, std::vector<Value*> values);
/// The same for an access of a field's element: its indices along these axes are to be in range, of
/// which the first that is not is told, or `known` is to hold, where that is not null.
void guard_indices(Builder& b, const Kernel& kernel, Inst* inst, std::span<const uint32_t> axes,
                   Value* known);
/// The same for an access of element `index` of an array of `count` elements; nothing happens where
/// the index is a constant in range.
Value* guard_array(Builder& b, Inst* inst, Value* index, uint64_t count);
/// Is index (of any integer type) within [0, extent)?
Value* in_range(Builder& b, Value* index, Value* extent);

}  // namespace quern::ir
