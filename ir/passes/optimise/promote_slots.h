#pragma once
// Scalar slots become values: an if_ gets results, a loop or while_ carried values.
//
// Expects: level structured or split, no exits. A slot is zero at each execution of its `slot`
// instruction.
// Guarantees: no slot of one element is left, except: one that a `reduce` names; one that is put
// inside a parallel loop or inside an if_, loop or while_ that contains a parallel loop and does
// not contain the slot (split_tasks gives those a frame cell). Slot arrays stay. Unused results and
// carried values it makes are left to simplify.
// Linear in instructions, plus puts times nesting depth.
#include "quern/ir/ir.h"

namespace quern::ir {
void promote_slots(Kernel& kernel);
/// The same, also of slots that are put where parallel loops stand, which kernel-level control
/// carries then: none of one element is left that no `reduce` names. For analyses that go by
/// values.
void promote_slots_across_parallels(Kernel& kernel);
}
