#pragma once
// Atomics on a field of few elements go to an array of the chunk first: a histogram whose bins all
// threads want.
//
// Expects: open_tasks and aggregate_atomics have run.
// Guarantees: rule 10 of docs/semantics.md. In a chunked task of a target that has such tasks only,
// atomics that may be combined (atomic_rules.h) and whose index differs between iterations ask
// whether the field has few elements (at most 4,096, at most 16 KB) and no more of them than the
// chunk makes updates, by its iterations and by rounds of inner loops where these are known before.
// If so they update an element of a slot array, neighbouring iterations in turns one of four where
// there is room, so that updates of one bin do not wait for each other; at the chunk's end each
// element that is not the identity goes to the field by one atomic. Else they are what they were.
// Not in checked mode, which names the iteration that failed; not on trees, where an update that
// changes nothing makes its element active; not where more than 64 atomics update a component,
// which would be a branch each. Linear.
#include "quern/ir/lower.h"

namespace quern::ir {
void privatise_atomics(Kernel& kernel, const TargetTraits& target);
}
