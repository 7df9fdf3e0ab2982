// Random programs mean the same before and after every machine-independent pass.
#include "tests/catch.h"

#include <functional>
#include <iterator>
#include <random>

#include "ir/passes/optimise/close_counters.h"
#include "ir/passes/optimise/dead_code.h"
#include "ir/passes/optimise/fold_ranges.h"
#include "ir/passes/optimise/forward.h"
#include "ir/passes/optimise/hoist.h"
#include "ir/passes/optimise/promote_slots.h"
#include "ir/passes/optimise/simplify.h"
#include "ir/passes/optimise/split_arrays.h"
#include "ir/passes/record/drop_unused_snapshots.h"
#include "ir/passes/record/inline_calls.h"
#include "ir/passes/record/number_sites.h"
#include "ir/passes/record/structure_exits.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/passes/programs.h"
#include "tests/passes/run.h"

using namespace quern;
using namespace quern::ir;

namespace {

struct Pass {
  const char* name;
  void (*run)(Kernel&);
};

const Pass finishing[] = {{"drop_unused_snapshots", drop_unused_snapshots},
                          {"structure_exits", structure_exits},
                          {"number_sites", number_sites}};
const Pass optimising[] = {{"inline_calls", inline_calls},
                           {"split_arrays", split_arrays},
                           {"promote_slots", promote_slots},
                           {"simplify", simplify},
                           {"forward", forward},
                           {"hoist", hoist},
                           {"close_counters", close_counters},
                           {"fold_ranges", [](Kernel& k) { fold_ranges(k, false); }},
                           {"simplify", simplify},
                           {"inline_applied", inline_applied},
                           {"simplify", simplify}};

constexpr uint64_t step_limit = 100'000;

struct Expected {
  test::Fields in;
  test::Outcome out;
};

/// The same, or failed alike: what follows a failure is not compared. Sites get other numbers.
bool agree(const test::Outcome& a, const test::Outcome& b) {
  if (!a.failed || !b.failed || !b.ended) return a == b;
  return a.iteration == b.iteration && a.values == b.values;
}

void compare(const Kernel& kernel, const std::vector<Expected>& expected, uint64_t seed,
             const char* pass) {
  INFO("seed " << seed << ", after " << pass);
  auto problems = verify(kernel);
  if (!problems.empty()) FAIL(problems.front() << "\n" << print(kernel));
  for (const Expected& e : expected)
    if (!agree(e.out, test::run(kernel, e.in, {.max_steps = 4 * step_limit}))) FAIL(print(kernel));
}

/// With how many inputs the program ended, and was compared.
size_t check_program(uint64_t seed) {
  auto kernel = test::random_program(seed);
  if (seed % 2 == 0) test::without_checks(*kernel);
  kernel->modes.checked = seed % 3 == 0;
  auto given = clone(*kernel);
  // A quotient that nobody uses goes, and with it the failure that it was in checked mode.
  if (kernel->modes.checked) drop_unused_snapshots(*given);
  std::vector<Expected> expected;
  for (uint64_t k = 0; k < 3; k++) {
    Expected e{test::random_inputs(seed * 3 + k), {}};
    e.out = test::run(*given, e.in, {.max_steps = step_limit});
    if (e.out.ended) expected.push_back(e);
  }
  for (const Pass& pass : finishing) {
    pass.run(*kernel);
    compare(*kernel, expected, seed, pass.name);
  }
  for (const Pass& pass : optimising) {
    pass.run(*kernel);
    compare(*kernel, expected, seed, pass.name);
  }
  return expected.size();
}

}  // namespace

TEST_CASE("passes keep the meaning of random programs") {
  size_t compared = 0;
  for (uint64_t seed = 0; seed < 2000; seed++) compared += check_program(seed);
  CHECK(compared > 4000);  // of 6000: others may take too many steps
}

TEST_CASE("each optimising pass alone keeps the meaning of random programs") {
  size_t compared = 0;
  for (uint64_t seed = 5000; seed < 5500; seed++) {
    for (const Pass& pass : optimising) {
      auto kernel = test::random_program(seed);
      for (const Pass& first : finishing) first.run(*kernel);
      Expected e{test::random_inputs(seed), {}};
      e.out = test::run(*kernel, e.in, {.max_steps = step_limit});
      pass.run(*kernel);
      if (!e.out.ended) continue;
      compare(*kernel, {e}, seed, pass.name);
      compared++;
    }
  }
  CHECK(compared > 300 * std::size(optimising));
}
