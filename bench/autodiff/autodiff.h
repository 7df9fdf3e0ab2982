#pragma once
// What gradients cost: of whole programs, of known problems beside gradients written by hand, and of
// the making of one.
#include "bench/harness.h"

namespace bench {

/// The programs of examples/differentiable in their usual sizes: a loss, and the loss with its
/// gradient; the ratio, and the memory that the latter takes beyond the former.
void autodiff_programs(Report& report);
/// The problems of inputs.h by Quern, by hand and by ADOL-C. Throws Error where gradients disagree.
void autodiff_problems(Report& report);
/// Kernels of a thousand operations: their first way back, from the making of it to its end, beside
/// their first launch.
void autodiff_compile(Report& report);

}  // namespace bench
