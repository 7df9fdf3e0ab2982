#pragma once
// Atomics on a field, or on a buffer, that all threads want go to copies of it first, which a chunk
// has for itself: a histogram, adjoints of what is gathered, particles that are spread to a grid.
//
// Expects: open_tasks and aggregate_atomics have run.
// Guarantees: rule 10 of docs/semantics.md. In a chunked task of a target that has such tasks only,
// atomics that may be combined (atomic_rules.h) and whose index differs between iterations ask
// whether there are copies of the field: a buffer (BufferSize::copies), whose size the runtime
// decides by the field's and how many updates come to it. Up to 8 of one region, between which is
// no loop or branch, ask once, but in rounds of a loop. If so, they update an element of the
// chunk's copy, row-major, neighbouring iterations in turns one of several where they are small
// (abi::copies) and few rounds lie between, so that updates of one element do not wait for each
// other; atomics there are plain, as no other thread touches it. Else they are what they were. A
// chunk begins by clearing its copies. A task behind each launch of this one, one for each field
// (Task::merges), combines the copies and then, plainly, each element that any update came to with
// the field's. Not in checked mode, which names the iteration that failed; not on trees, where an
// update that changes nothing makes its element active; not where more than 128 atomics update a
// component, as each is there twice. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void privatise_atomics(Kernel& kernel, const TargetTraits& target);
}
