#pragma once
// Memory that is known: a load of what this iteration has just loaded or stored becomes that value;
// a store that the same iteration overwrites before anyone can look is dropped.
//
// Expects: level structured or split; runs again after bind, when alias classes are known.
// Guarantees: rules 3, 8 and 9 of docs/semantics.md. A location is a binding, a component and equal
// index values. Bindings may overlap unless both alias classes are known (not 0) and differ; the
// frame overlaps no field; components of one binding, and indices that differ by a constant, do
// not overlap. Any other write, an atomic or a call ends what is known. Nothing is known on entry
// to a parallel loop, and nothing of what a loop writes on entry to the loop. Values whose storage
// is of another type are left alone; so are, in checked mode, a store that is overwritten and a
// load of what was stored: the store may be out of range.
// Linear times a small bound on the number of values kept per component.
#include "quern/ir/ir.h"

namespace quern::ir {
void forward(Kernel& kernel);
/// The same of one root.
void forward_root(Kernel& kernel, Region* root);
}  // namespace quern::ir
