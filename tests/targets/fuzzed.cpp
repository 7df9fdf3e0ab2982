// Random programs compile for GPUs.
#include "quern/ir/lower.h"
#include "tests/catch.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/outcome.h"
#include "tests/fuzz/engine/shrink.h"
#include "tests/targets/toolbox.h"
#include "tools/gpus/ptxas.h"

using namespace quern;

TEST_CASE("a thousand random programs compile for GPUs") {
  test::Made before = test::made();
  for (uint64_t seed = 1; seed <= 1000; seed++) {
    fuzz::Program program = fuzz::generate(seed);
    ir::Signature signature = fuzz::signature(program);
    // Half of them at least as users run them: contracted, and with native atomics on floats.
    if (seed % 2 == 0) program.kernel->modes.strict = signature.modes.strict = false;
    ir::finish_recording(*program.kernel);
    runtime::Recording source(std::move(program.kernel));
    std::string faults = test::compile_for_gpus(source, signature);
    INFO("seed " << seed);
    REQUIRE(faults == "");
  }
  test::Made after = test::made();
  CHECK(after.ptx - before.ptx == 1000 * test::of_a_kernel().ptx);
  CHECK(after.objects - before.objects == 1000 * test::of_a_kernel().objects);
  if (!gpus::ptxas()) WARN("there is no ptxas: PTX was made, not assembled");
}
