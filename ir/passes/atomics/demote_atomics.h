#pragma once
// An atomic becomes a plain read and write where no other iteration touches the location.
//
// Expects: bind has run, tasks not opened.
// Guarantees: rule 10 of docs/semantics.md. Demoted are: every atomic of a serial task; in a range
// task those of a component of which no two iterations come to one element, where no other binding
// of the same alias class is accessed. That is known where each index of the iteration decides on
// an axis of its own, the same for every access: by factor · index + what all iterations share + a
// constant, where constants are equal or differ by what is no multiple of the factor. Indices that
// wrap are taken for out of range: factors of 32-bit ones are below 2^8. Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void demote_atomics(Kernel& kernel);
}
