#pragma once
#include "bench/cuda/reference.h"

namespace bench::cuda {
/// Runs each function on small data, odd sizes too, and compares with the C++ of bench/reference.h:
/// sums to 1e-5, the rest to 1e-6 of the largest number. Throws quern::Error naming the function.
void expect_right(const Functions& functions);
}  // namespace bench::cuda
