#pragma once
// Bounds from above the extents that only the device knows, so that the host need not wait for them.
//
// Expects: level opened.
// Guarantees: each element task without lanes whose domain reads frame cells, and for whose iterations
// no buffer is made, has a `bound`: a region
// like the domain that reads none of them, and whose indices contain the domain's. A minimum or a
// maximum is bounded by its operands, what else depends on a cell by its type. Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void bound_domains(Kernel& kernel);
}
