#pragma once
// What loops run through: the bounds of an index, whether a loop has them as operands or names the
// field that it walks.
#include <optional>

#include "quern/ir/ir.h"

namespace quern::ir {

/// lo ≤ index < hi. Of a loop that walks a field: from the first index of `axis` on, as many as its
/// extent; lo and hi are null.
struct IndexBounds {
  const Value *lo = nullptr, *hi = nullptr;
  std::optional<Part> axis;
};

/// Of the index of a `loop` or `parallel`; none for other values.
std::optional<IndexBounds> bounds_of(const Value* v);

}  // namespace quern::ir
