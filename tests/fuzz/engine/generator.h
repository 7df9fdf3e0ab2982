#pragma once
#include "tests/fuzz/engine/program.h"

namespace quern::fuzz {

/// A random kernel at level recorded, strict or not, with inputs. Its result is the same after
/// every pass: it ends, reads and writes in range, fails no check, has no race, uses no result that
/// depends on the order of iterations (float sums of default mode are of small integers), and never
/// looks at the bits of a NaN.
Program generate(uint64_t seed);

}  // namespace quern::fuzz
