#pragma once
// Whether a kernel computes from the fields as its launch found them.
//
// What goes back through a launch runs on those fields as they were before it. A read that may find
// what the launch itself has written would find something else then.
#include "quern/ir/ir.h"

namespace quern::autodiff {

/// Of an optimised kernel, in which what an iteration reads of its own writes is a value already.
/// Throws Error with the lines of a read of an element and of what may have written it before: in
/// the same iteration or one before it of a serial loop, in an earlier loop, or by an atomic of
/// another iteration; and of a read of a variable inside a branch or loop that changes later.
void expect_reads_before_writes(const ir::Kernel& kernel);

}  // namespace quern::autodiff
