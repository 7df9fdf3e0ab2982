#pragma once
// Which reads find what the launch has changed, so that going back does not find it again: those of
// logged_reads.h.
#include <vector>

#include "quern/ir/ir.h"

namespace quern::autodiff {

struct ChangedReads {
  std::vector<ir::Inst*> reads;  ///< in program order
  std::vector<bool> written;     ///< of each binding: may what is written change what is read?
};

/// Of a kernel at level structured. Throws Error with both lines where what is read depends on the order
/// of iterations: an element that other iterations of the same loop add to.
ChangedReads changed_reads(const ir::Kernel& kernel);

/// Does it write to a field?
bool is_write(const ir::Inst* inst);
/// The innermost parallel loop around; null: there is none.
const ir::Inst* parallel_around(const ir::Region* region);
/// Do two accesses of a field never meet, as an index is one constant here and another there?
bool are_apart(const ir::Inst* a, const ir::Inst* b);

}  // namespace quern::autodiff
