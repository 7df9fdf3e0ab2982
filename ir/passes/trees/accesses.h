#pragma once
// What is known of an access to a field on a tree from the code around it.
#include "quern/ir/ir.h"

namespace quern::ir {

/// Operations that make an element active unless it is, of most fields.
bool may_claim(const Inst* inst);
/// Does the access make its element active unless it is? Not where elements are the tree's cells.
bool claims(const Kernel& kernel, const Inst* inst);
/// Do indices of the access's field name the same elements of the tree as those of the other?
bool names_alike(const Kernel& kernel, const Inst* inst, uint32_t field);
/// Does the access stand where an `is_active` has said that its element is?
bool is_known(const Kernel& kernel, const Inst* inst);

}  // namespace quern::ir
