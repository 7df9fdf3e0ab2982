#pragma once
// Replaces bindings by addresses.
//
// Expects: open_tasks has run; checks have been made (lower_checks): every access left is in range.
// Guarantees: no param, extent, load, store, atomic in task bodies (domains keep theirs: the host
// evaluates them). Entries of the argument block are read at the top of the body. An address is a
// chain of offsets from the base, the fast axis last and then the way inside a block; the stride of
// the fast axis of a contiguous field and everything inside a block are constants, as is the way
// between components that lie side by side. Storage types are read and written, converted to and
// from the value's; a bool is a u8. Index arithmetic `i ± c`, c within ±2^30, on the index of a
// loop that starts at a constant from 0 on or at a field's first index (which lies within ±2^30) is
// done in 64 bits: where the 32-bit sum would wrap, the access is out of range either way. Alias
// classes: a field's own, or one of quern/ir/abi.h. Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void lower_access(Kernel& kernel);
}
