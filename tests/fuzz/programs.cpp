// Random programs do the same after every pass and on every device.
#include "tests/catch.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/shrink.h"

using namespace quern;

namespace {

std::shared_ptr<runtime::Device> device(const std::string& name) {
  for (const runtime::Backend& b : runtime::backends()) {
    std::string why;
    if (b.name == name && !b.probe(why).empty()) return runtime::Device::open(name);
  }
  return nullptr;
}

void agree(uint64_t first, uint64_t count, const fuzz::Checks& checks) {
  for (uint64_t seed = first; seed < first + count; seed++) {
    fuzz::Program program = fuzz::generate(seed);
    std::string why;
    if (!fuzz::sound(program, checks, &why)) FAIL("seed " << seed << " is not sound: " << why);
    auto failure = fuzz::check(program, checks);
    if (!failure) continue;
    fuzz::Program small = fuzz::shrink(program, *failure, checks, 20);
    FAIL(fuzz::text(small, *failure));
  }
}

}  // namespace

TEST_CASE("a thousand programs after every pass") { agree(1, 1000, {}); }

TEST_CASE("a thousand programs on the interpreter's device and the CPU") {
  fuzz::Checks checks;
  checks.passes = false;
  checks.devices = {device("interpreter")};
  if (auto cpu = device("cpu")) checks.devices.push_back(cpu);
  agree(1, 1000, checks);
}

TEST_CASE("three hundred programs on Vulkan") {
  fuzz::Checks checks;
  checks.passes = false;
  if (auto vulkan = device("vulkan")) {
    checks.devices = {vulkan};
    agree(1, 300, checks);
  } else {
    WARN("no Vulkan device is present: nothing was compared");
  }
}
