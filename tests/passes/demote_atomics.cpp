// Which atomics become plain, as no other iteration comes to their element.
#include "ir/passes/atomics/demote_atomics.h"

#include <string>

#include "ir/passes/tasks/bind.h"
#include "ir/passes/tasks/split_tasks.h"
#include "quern/ir/text.h"
#include "tests/catch.h"

using namespace quern;
using namespace quern::ir;

namespace {

/// How many are left of an `atomic.add` to x at `index`, in a loop over x with more accesses.
/// Fields of one alias class may overlap; y, the second one, has this class.
size_t atomics_left(const std::string& index, const std::string& others, uint32_t class_of_y = 1) {
  auto kernel = parse(R"(quern 1
    kernel @k level=structured
    binding field rank=1 i32 "x"
    binding field rank=1 i32 "y"
    body {
      %z = constant<0> : i32
      %one = constant<1> : i32
      %n = extent<0.0> : i32
      parallel %z, %n {(%i: i32)
        %two = constant<2> : i32
        %size = extent<0.0> : i32
        %up = add %i, %one : i32
        %down = sub %size, %i : i32
        %even = mul %i, %two : i32
        %odd = add %even, %one : i32
        %next = add %even, %two : i32
        %twice = add %i, %i : i32
        %third = add %even, %i : i32
        %most = constant<255> : i32
        %more = constant<256> : i32
        %many = mul %i, %most : i32
        %too_many = mul %i, %more : i32
        %old = atomic.add<0.0> )" +
                      index + ", %one : i32\n" + others + R"(
        yield
      }
      yield
    })");
  split_tasks(*kernel);
  Signature s;
  s.fields = {{true, 0}, {true, 1}};
  s.fields[1].alias_class = class_of_y;
  s.modes = kernel->modes;
  bind(*kernel, s);
  demote_atomics(*kernel);
  size_t left = 0;
  for (Task& task : kernel->tasks)
    walk(task.body, [&](const Inst* inst) { left += inst->is(Op::atomic); });
  return left;
}

std::string read(const std::string& at) {
  return "%v = load<0.0> " + at + " : i32\nstore<1.0> %i, %v";
}

}  // namespace

TEST_CASE("atomics on an iteration's own location become plain") {
  CHECK(atomics_left("%i", "") == 0);
  CHECK(atomics_left("%up", "") == 0);
  CHECK(atomics_left("%i", "%v = load<0.0> %i : i32\nstore<0.0> %i, %v") == 0);
  CHECK(atomics_left("%i", "%v = load<0.0> %up : i32\nstore<0.0> %i, %v") == 1);
  CHECK(atomics_left("%z", "") == 1);
  CHECK(atomics_left("%i", "%v = load<1.0> %up : i32\nstore<0.0> %i, %v") == 0);
  CHECK(atomics_left("%i", "%v = load<1.0> %up : i32\nstore<0.0> %i, %v", 0) == 1);
}

TEST_CASE("locations are an iteration's own backwards and at even distances too") {
  CHECK(atomics_left("%down", read("%down")) == 0);
  CHECK(atomics_left("%down", read("%i")) == 1);
  CHECK(atomics_left("%even", read("%odd")) == 0);
  CHECK(atomics_left("%even", read("%twice")) == 0);
  CHECK(atomics_left("%even", read("%next")) == 1);  // the next iteration's
  CHECK(atomics_left("%even", read("%i")) == 1);
  CHECK(atomics_left("%even", read("%third")) == 1);
  CHECK(atomics_left("%many", "") == 0);
  CHECK(atomics_left("%too_many", "") == 1);  // which may wrap
  CHECK(atomics_left("%i", "%k = load<1.0> %i : i32\n%far = add %i, %k : i32\n" + read("%far")) ==
        1);
}
