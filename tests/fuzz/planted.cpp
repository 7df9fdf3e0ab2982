// The fuzzer finds a wrong pass, names it and makes the program that shows it small.
#include <chrono>

#include "tests/catch.h"
#include "tests/fuzz/engine/generator.h"
#include "tests/fuzz/engine/shrink.h"

using namespace quern;
using namespace quern::ir;

namespace {

using Change = void (*)(Kernel&);

void swap_operands_of_sub(Kernel& kernel) {
  walk(kernel, [](Inst* inst) {
    if (!inst->is(Op::sub)) return;
    Value *a = inst->operand(0), *b = inst->operand(1);
    inst->set_operand(0, b);
    inst->set_operand(1, a);
  });
}

void forget_stores_in_branches(Kernel& kernel) {
  walk(kernel, [](Inst* inst) {
    if (inst->is(Op::store) && inst->parent->parent && inst->parent->parent->is(Op::if_))
      inst->erase();
  });
}

void weaken_comparisons(Kernel& kernel) {
  walk(kernel, [](Inst* inst) {
    if (inst->is(Op::lt)) inst->op = Op::le;
  });
}

size_t instructions(Kernel& kernel) {
  size_t count = 0;
  walk(kernel, [&](Inst*) { count++; });
  return count;
}

void expect_found(std::string pass, Change change) {
  fuzz::Checks checks;
  checks.sabotage = [&](std::string_view after, Kernel& kernel) {
    // Where addresses are computed a wrong operation may touch any memory.
    if (after == pass && kernel.level < Level::lowered) change(kernel);
  };
  auto start = std::chrono::steady_clock::now();
  for (uint64_t seed = 1; seed < 300; seed++) {
    fuzz::Program program = fuzz::generate(seed);
    auto failure = fuzz::check(program, checks);
    if (!failure || failure->stage != pass) continue;
    fuzz::Program small = fuzz::shrink(program, *failure, checks, 20);
    INFO(fuzz::text(small, *failure));
    CHECK(fuzz::check(small, checks)->stage == pass);
    CHECK_FALSE(fuzz::check(small, {}).has_value());
    CHECK(instructions(*small.kernel) <= 30);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::minutes(1));
    return;
  }
  FAIL("nothing was found");
}

}  // namespace

TEST_CASE("a pass that swaps the operands of sub") {
  expect_found("simplify", swap_operands_of_sub);
}
TEST_CASE("a pass that forgets stores") { expect_found("forward", forget_stores_in_branches); }
TEST_CASE("a pass that takes < for <=") { expect_found("split_tasks", weaken_comparisons); }
