// In every program of tests that has the passes: kernels are verified after each of them.
#include "quern/ir/lower.h"
#include "quern/ir/verify.h"

namespace {
[[maybe_unused]] const bool verified = (quern::ir::set_pass_check(quern::ir::expect_valid), true);
}
