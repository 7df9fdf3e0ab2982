#pragma once
// Gives what may fail in checked mode a place that an error can name.
//
// Expects: level structured or split; modes are known.
// Guarantees: in checked mode each access of a field, each indexed get and put of an array, each
// integer division and each conversion that may overflow has a site of kind bounds, division or
// conversion, with the text of the error and the types of the values that come with it: an access
// index (i64), axis (i32), extent (i64); an array index (i64), count (i64); a conversion the
// operand. Else nothing changes.
// Linear.
#include "quern/ir/ir.h"

namespace quern::ir {
void add_sites(Kernel& kernel);
}
