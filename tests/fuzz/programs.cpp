// Random programs do the same after every pass and on every device.
#include <cstdlib>

#include "tests/catch.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/shrink.h"

using namespace quern;

namespace {

void expect_agreement(uint64_t first, uint64_t count, const fuzz::Checks& checks) {
  uint64_t agreed = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    fuzz::Program program = fuzz::generate(seed);
    std::string why;
    if (!fuzz::sound(program, checks, &why)) FAIL("seed " << seed << " is not sound: " << why);
    auto failure = fuzz::check(program, checks);
    if (!failure) {
      agreed++;
      continue;
    }
    fuzz::Program small = fuzz::shrink(program, *failure, checks, 20);
    FAIL(fuzz::text(small, *failure));
  }
  CHECK(agreed == count);
}

}  // namespace

TEST_CASE("a thousand programs after every pass", "[host]") { expect_agreement(1, 1000, {}); }

namespace {
/// `most` programs, on slow devices fewer.
void expect_agreement_on_devices(uint64_t most, uint64_t on_slow, bool on_trees) {
  const char* only = std::getenv("QUERN_DEVICE");
  size_t compared = 0;
  for (const runtime::Backend& backend : runtime::backends()) {
    if (only && *only && backend.name != only) continue;
    std::string absent;
    if (backend.probe(absent).empty()) {
      WARN("nothing was compared on " << backend.name << ": " << absent);
      continue;
    }
    INFO("on " << backend.name);
    fuzz::Checks checks;
    checks.passes = false;
    checks.devices = {runtime::Device::open(backend.name)};
    checks.on_trees = on_trees;
    expect_agreement(1, backend.name == "vulkan" ? on_slow : most, checks);
    compared++;
  }
  CHECK(compared >= 1);
}
}  // namespace

TEST_CASE("a thousand programs on every device, on slow ones three hundred") {
  expect_agreement_on_devices(1000, 300, false);
}

TEST_CASE("programs with fields on trees do the same as with dense ones, on every device") {
  expect_agreement_on_devices(400, 100, true);
}
