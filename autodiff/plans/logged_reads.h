#pragma once
// Reads whose values going back does not find again, and the log that keeps them.
//
// Values are computed again from fields as they were before the launch. What a launch reads behind
// its own writes is not there: an element that it may have written before, an element of a local
// array that is written again behind a read, a variable that changes later. Before a launch with
// such reads is gone back through it is run once more, on copies of those fields, and logs what it
// reads (Tapenade's "to be recorded", for whole launches: Hascoët and Pascual, ACM TOMS 39(3),
// 2013). No bound, no truncation: rows are counted first.
//
// A read that stands directly in the kernel's body has one row; in an iteration of a parallel loop
// the one of the iteration's number; in a serial loop one for each round, counted from the first
// row of its iteration on. Rows of which all iterations have as many, known before the loop, lie by row,
// then iteration (alike_rows.h), and nobody counts them. Row numbers are ordinary values of the kernel, so
// that going back has them wherever it is.
//
// What an iteration reads of its own variables needs no launch before: who goes back through the iteration
// logs it there, where it is still in the cache.
#include <memory>
#include <unordered_map>

#include "quern/ir/builder.h"
#include "quern/ir/lower.h"

namespace quern::autodiff {

/// A field of one axis that a log needs, with so many elements.
struct LogField {
  enum Rule : uint8_t {
    constant,  ///< `number`
    sized,     ///< what result `number` of Log::sizes says
    counted,   ///< what element `number` of Log::cursors is behind Log::count
    unused     ///< none: nobody accesses it
  };
  ir::Type type = ir::Type::none;
  Rule rule = constant;
  uint64_t number = 0;
  bool is_written_first = false;  ///< elements are written before they are read
};

/// The kernels that fill a log, in the order in which they run. Bindings: the primal's, then
/// `fields`. None: nobody reads it.
struct Log {
  std::vector<LogField> fields;
  std::vector<bool> copied;  ///< of each binding of the primal: it is written here, so on a copy
  std::unique_ptr<ir::Kernel> sizes;
  std::unique_ptr<ir::Kernel> count;   ///< null where no row is counted
  uint32_t cursors = ir::no_binding;   ///< of what is counted, zeros
  std::unique_ptr<ir::Kernel> record;  ///< null where whoever goes back logs all
};

/// Where a read's value is kept: an element of a binding, and its number, i64.
struct LoggedRead {
  uint32_t binding = ir::no_binding;
  ir::Value* row = nullptr;
  /// Integers alone decide how many rows there are: as many as were counted.
  bool is_exact = false;
  /// Of a variable of an iteration, and exact: whoever goes back through the iteration may log it there.
  bool is_private = false;
};
/// A float operation gives the same wherever it is computed.
void keep_order(ir::Inst* inst);
/// `row`, or the last row of the binding where there are not as many.
ir::Value* last_row_or(ir::Builder& b, uint32_t binding, ir::Value* row);
/// The same of a read's row, of which there may be others only where it is not exact.
ir::Value* row_or_last(ir::Builder& b, const LoggedRead& read, ir::Value* row);
/// A check that fails where a loop has other rounds than when its rows were counted.
void check_same_rounds(ir::Kernel& kernel, ir::Builder& b, ir::Value* same);

using LoggedReads = std::unordered_map<const ir::Inst*, LoggedRead>;

/// Adds row numbers to a kernel at level structured, optimised for its launch, and bindings for the
/// log. Throws Error with both lines where what is read depends on the order of iterations: an
/// element that other iterations of the same loop add to.
/// `on_trees`: some fields are on trees.
LoggedReads number_rows(ir::Kernel& kernel, bool on_trees);

/// Of the kernel as it was before number_rows. `wanted`: of each binding that this adds, whether
/// its elements are read by who goes back; nothing else is kept. `logged`: which of them he logs.
Log log_of(const ir::Kernel& kernel, bool on_trees, const std::vector<bool>& wanted,
           const LoggedReads& logged);

}  // namespace quern::autodiff
