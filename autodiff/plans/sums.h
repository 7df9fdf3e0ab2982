#pragma once
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Is `sum` what `start`, an argument of a region, has become by additions and subtractions, and
/// are all uses of it, and of what it was in between, these? Branches and loops may stand on the
/// way. Then d sum / d start is 1, and nothing else depends on `start`.
bool is_only_added_to(const ir::Value* start, const ir::Value* sum);

}  // namespace quern::autodiff
