#pragma once
// Removes what recording emitted in advance and the program never used.
//
// Expects: level recorded; regions may go on after a break_, continue_ or return_.
// Guarantees: nothing follows an exit in its region; no load, get or pure instruction and no guard
// made of those alone has only unused results. A read that was never used is no read: dropping it
// here, in checked mode too, is the meaning of the language and not an optimisation.
// Linear in the number of instructions.
#include "quern/ir/ir.h"

namespace quern::ir {
void drop_unused_snapshots(Kernel& kernel);
}
