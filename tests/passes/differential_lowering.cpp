// Random programs mean the same when they are split into tasks and lowered: chunked, one thread or
// one thread an iteration, with and without optimisation, checked or not.
#include "tests/catch.h"

#include <cstdlib>
#include <random>

#include "ir/passes/record/inline_calls.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/passes/programs.h"
#include "tests/passes/run.h"

using namespace quern;
using namespace quern::ir;

namespace {

constexpr uint64_t step_limit = 50'000;

Signature signature_of(const Kernel& kernel) {
  Signature s;
  for (uint32_t k = 0; k < kernel.bindings.size(); k++) s.fields.push_back({k % 2 == 0, k});
  s.modes = kernel.modes;
  return s;
}

struct Way {
  bool optimised = true;
  Task::Walk walk = Task::chunked;
  bool checked = false, strict = false;
  uint64_t grain = 1;
  uint32_t blocks = 1, block_threads = 1;
};

void check_way(const Kernel& source, const Way& way, uint64_t seed, const test::Fields& in,
               const test::Outcome& expected) {
  auto kernel = clone(source);
  kernel->modes.strict = way.strict;
  kernel->modes.checked = way.checked;
  INFO("seed " << seed << (way.optimised ? " optimised" : "") << (way.checked ? " checked" : "")
               << (way.walk == Task::element ? " element" : " chunked"));
  if (way.optimised) {
    optimise(*kernel);
    split(*kernel);
  } else {
    inline_calls(*kernel);
    inline_applied(*kernel);
    split_as_written(*kernel);
  }
  TargetTraits traits;
  traits.walk = way.walk;
  traits.block_reductions = seed % 2 == 0;
  traits.narrow_atomics = false;
  traits.if_nesting = uint32_t(seed % 4);
  traits.strip = seed % 3 == 0 ? 4 : 0;
  traits.calls = seed % 4 < 2;
  traits.most_copied = 0;
  lower(*kernel, signature_of(*kernel), traits);
  test::Outcome out = test::run(*kernel, in,
                                {.grain = way.grain,
                                 .blocks = way.blocks,
                                 .block_threads = way.block_threads,
                                 .max_steps = 40 * step_limit});
  // Checked mode stops at what the unchecked meaning defines: ÷ 0, conversions that overflow.
  if (out.failed && way.checked) return;
  if (out != expected) FAIL(print(source) << print(*kernel));
}

}  // namespace

TEST_CASE("lowering keeps the meaning of random programs") {
  const Way ways[] = {
      {true, Task::chunked, false, false, 3},       {false, Task::chunked, false, false, 100},
      {true, Task::element, false, false, 1, 1, 1}, {false, Task::element, false, false, 1, 2, 4},
      {true, Task::chunked, true, false, 2},        {true, Task::chunked, false, true, 2}};
  const char* one = std::getenv("QUERN_SEED");
  size_t compared = 0;
  uint64_t first = one ? std::strtoull(one, nullptr, 10) : 10'000;
  for (uint64_t seed = first; seed < first + (one ? 1 : 400); seed++) {
    auto kernel = test::random_program(seed);
    test::without_checks(*kernel);
    auto in = test::random_inputs(seed);
    test::Outcome expected = test::run(*kernel, in, {.max_steps = step_limit});
    if (!expected.ended) continue;
    finish_recording(*kernel);
    for (const Way& way : ways) check_way(*kernel, way, seed, in, expected);
    compared++;
  }
  CHECK(compared >= (one ? 1 : 300));
}
