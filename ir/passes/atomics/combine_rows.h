#pragma once
// The bodies of the tasks that combine the rows of partial values that another task leaves.
#include "ir/passes/atomics/accumulators.h"

namespace quern::ir {

/// Of a serial task whose `end` says how many rows there are: all of them into the frame cells, in
/// any order, or in chunks of 1,024, level by level in place, until one row is left.
Region* combine_rows(Builder& b, Accumulators& accumulators, uint32_t frame, Loc loc);

// Behind a task with lanes (abi::combinations); the last row made is the value of all.

/// Of a combine task: values, which are rows, into the lanes of chunks of them.
Region* gather_values(Builder& b, Accumulators& accumulators, Loc loc);
/// Of a combine task: the 32 lanes of each chunk into its value.
Region* halve_lanes(Builder& b, Accumulators& accumulators, Loc loc);
/// Of a serial task: the last of its `end` rows into the frame cells.
Region* take_last_row(Builder& b, Accumulators& accumulators, uint32_t frame, Loc loc);

}  // namespace quern::ir
