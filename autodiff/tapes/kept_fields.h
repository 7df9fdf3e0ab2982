#pragma once
// Fields for what launches keep besides what they write.
#include <memory>
#include <span>
#include <vector>

#include "quern/runtime/storage.h"

namespace quern::autodiff {

std::vector<ir::Storage> stored(std::span<const ir::Type> types);

/// Rows to allocate: rounds that were not counted stay in the last one until a check ends the
/// launch.
int64_t at_least_one(uint64_t rows);

/// Of the components of the field's adjoints.
std::vector<ir::Type> adjoint_types(const runtime::Storage& field);

/// Zeros, or anything, for the adjoints of the field, lying on their own.
std::shared_ptr<runtime::Storage> like_adjoints_of(const runtime::Storage& field, bool unset,
                                                   Loc loc);

}  // namespace quern::autodiff
