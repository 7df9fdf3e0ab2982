// Random programs compile for GPUs.
#include "quern/ir/lower.h"
#include "tests/catch.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/outcome.h"
#include "tests/fuzz/engine/shrink.h"
#include "tests/targets/toolbox.h"
#include "tools/gpus/ptxas.h"

using namespace quern;

TEST_CASE("random programs compile for GPUs: hundreds, a thousand for every GPU") {
  const uint64_t programs = test::gpus_of_a_kernel() > 1 ? 1000 : 300;
  test::Made before = test::made();
  for (uint64_t seed = 1; seed <= programs; seed++) {
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
  CHECK(after.ptx - before.ptx + after.objects - before.objects ==
        programs * test::gpus_of_a_kernel());
  if (!gpus::ptxas()) WARN("there is no ptxas: PTX was made, not assembled");
}
