#pragma once
// An atomic becomes a plain read and write where no other iteration touches the location.
//
// Expects: bind has run, tasks not opened.
// Guarantees: rule 10 of docs/semantics.md. Demoted are: every atomic of a serial task; in a range
// task those of a component whose every access names each index of the iteration, plus a constant,
// on an axis of its own, always the same axis and constant, where no other binding of the same
// alias class is accessed.
// Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void demote_atomics(Kernel& kernel);
}
