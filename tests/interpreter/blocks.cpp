// Blocks of threads: what `block_reduce` gives, and that all of a block must reach it together.
#include <algorithm>

#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"
#include "tests/interpreter/launch.h"
#include "tests/interpreter/stages.h"
#include "tests/message_of.h"

using namespace quern;
using namespace quern::ir;
using test::Launch;

namespace {

/// A lowered kernel with a field of i64, whose threads run `body`. There %x is the field's base,
/// %thread and %number (in the block) are known, %zero is 0, and %own the thread's element.
std::unique_ptr<Kernel> threads(const std::string& body) {
  return parse(R"(quern 1
    kernel @k level=lowered
    binding field rank=1 i64 "x"
    task range rank=1 walk=element domain {
      %a = constant<0> : i64
      %b = constant<1> : i64
      yield %a, %b
    } {
      %x = arg<)" +
               std::to_string(abi::head_bytes) + R"(> : address
      %thread = builtin.thread : i64
      %number = builtin.block_thread : i64
      %zero = constant<0> : i64
      %one = constant<1> : i64
      %eight = constant<8> : i64
      %bytes = mul %thread, %eight : i64
      %own = offset %x, %bytes : address
      )" + body +
               R"(
      yield
    }
    schedule { launch 0 }
  )");
}

struct Shape {
  uint32_t blocks, size;
};
constexpr Shape shapes[] = {{1, 1}, {1, 7}, {3, 1}, {4, 2}, {3, 5}, {2, 64}};

interpreter::Options in(Shape shape, uint64_t seed = 0) {
  return {.seed = seed, .blocks = shape.blocks, .block_threads = shape.size};
}

std::vector<int64_t> run(const Kernel& kernel, Shape shape, uint64_t seed = 0) {
  std::vector<int64_t> x(shape.blocks * shape.size, -1);
  Launch(kernel).field(0, x).run(kernel, in(shape, seed));
  return x;
}

/// The message of the error, whose line is that of the first block_reduce.
std::string refused(const std::string& body, Shape shape) {
  auto kernel = threads(body);
  int line = 100;
  walk(*kernel,
       [&](Inst* inst) { inst->loc = {"user.cpp", inst->is(Op::block_reduce) ? line++ : 1}; });
  return test::message_of([&] { run(*kernel, shape); });
}

}  // namespace

TEST_CASE("the first thread of a block gets what its threads bring, combined") {
  auto sum = threads(R"(
    %square = mul %thread, %thread : i64
    %all = block_reduce.add %square : i64
    %most = block_reduce.max %thread : i64
    %first = eq %number, %zero : b1
    if %first {
      %both = sub %all, %most : i64
      write<0> %own, %both
      yield
    } {
      yield
    })");
  expect_valid(*sum, "parsing");
  for (Shape shape : shapes)
    for (uint64_t seed : {0, 1, 2}) {
      const std::vector<int64_t> x = run(*sum, shape, seed);
      for (int64_t b = 0; b < shape.blocks; b++) {
        int64_t all = 0;
        for (int64_t t = b * shape.size; t < (b + 1) * shape.size; t++) all += t * t;
        CHECK(x[size_t(b * shape.size)] == all - ((b + 1) * shape.size - 1));
      }
    }
}

TEST_CASE("the other threads of a block get nothing of use") {
  auto kernel = threads("%all = block_reduce.add %one : i64\nwrite<0> %own, %all");
  const std::vector<int64_t> x = run(*kernel, {2, 4});
  for (size_t t = 0; t < x.size(); t++)
    if (t % 4 == 0)
      CHECK(x[t] == 4);
    else
      CHECK((x[t] < 0 || x[t] > 4));
}

TEST_CASE("threads that part may meet again") {
  auto kernel = threads(R"(
    %two = constant<2> : i64
    %rest = rem %thread, %two : i64
    %odd = ne %rest, %zero : b1
    %mine = if %odd : i64 {
      %long = loop %zero, %thread, %one, %zero : i64 {(%k: i64, %sum: i64)
        %next = add %sum, %k : i64
        yield %next
      }
      yield %long
    } {
      yield %one
    }
    %all = block_reduce.add %mine : i64
    write<0> %own, %all)");
  const std::vector<int64_t> x = run(*kernel, {2, 4});
  CHECK(x[0] == 1 + 0 + 1 + 3);
  CHECK(x[4] == 1 + 10 + 1 + 21);
}

TEST_CASE("a place that not all threads of a block reach together is an error with its line") {
  const std::string under_condition = R"(
    %below = lt %thread, %eight : b1
    if %below {
      %all = block_reduce.add %thread : i64
      yield
    } {
      yield
    })";
  CHECK(refused(under_condition, {2, 4}) == "");
  CHECK(refused(under_condition, {4, 4}) == "");  // whole blocks
  CHECK(
      refused(under_condition, {1, 12}) ==
      "user.cpp:100: 8 of the 12 threads of a block reach a block_reduce together, the others have "
      "ended: all threads of a block must reach it");
  CHECK(refused(R"(
    %first = eq %number, %zero : b1
    if %first {
      %a = block_reduce.add %thread : i64
      yield
    } {
      %b = block_reduce.add %thread : i64
      yield
    })",
                {1, 3}) ==
        "user.cpp:100: 1 of the 3 threads of a block reach a block_reduce together, another is at "
        "user.cpp:101: all threads of a block must reach it");
}

TEST_CASE("rounds of a loop are places of their own") {
  const std::string uniform = R"(
    loop %zero, %eight, %one {(%k: i64)
      %all = block_reduce.add %k : i64
      yield
    })";
  CHECK(refused(uniform, {2, 3}) == "");
  const std::string other_rounds = R"(
    loop %zero, %eight, %one {(%k: i64)
      %here = eq %k, %number : b1
      if %here {
        %all = block_reduce.add %k : i64
        yield
      } {
        yield
      }
      yield
    })";
  CHECK(refused(other_rounds, {2, 1}) == "");
  CHECK(refused(other_rounds, {1, 2}) ==
        "user.cpp:100: 1 of the 2 threads of a block reach a block_reduce together, another is in "
        "another round of a loop around it: all threads of a block must reach it");
  CHECK(
      refused("loop %zero, %number, %one {(%k: i64)\n%all = block_reduce.add %k : i64\nyield\n}",
              {1, 3}) ==
      "user.cpp:100: 2 of the 3 threads of a block reach a block_reduce together, the others have "
      "ended: all threads of a block must reach it");
}

TEST_CASE("reductions and atomics on one place are combined block by block") {
  auto kernel = parse(R"(quern 1
    kernel @k level=structured results(i32, u32, i64)
    binding scalar i32 "unused"
    binding field rank=1 i32 "v"
    binding field rank=1 i32 "all"
    body {
      %z = constant<0> : i32
      %n = extent<1.0> : i32
      %sum = slot<1> : slot i32
      %bits = slot<1> : slot u32
      %least = slot<1> : slot i64
      parallel %z, %n {(%i: i32)
        %v = load<1.0> %i : i32
        reduce.add %sum, %v
        %u = convert %v : u32
        reduce.bit_xor %bits, %u
        %w = convert %v : i64
        reduce.min %least, %w
        %old = atomic.max<2.0> %z, %v : i32
        yield
      }
      %a = get %sum : i32
      %b = get %bits : u32
      %c = get %least : i64
      yield %a, %b, %c
    })");
  TargetTraits traits = test::walked(Task::element);
  traits.block_reductions = true;
  bool met = false;
  test::each_stage(*kernel, traits, [&](std::string_view pass, const Kernel& k) {
    INFO("after " << pass);
    walk(const_cast<Kernel&>(k), [&](Inst* inst) { met |= inst->is(Op::block_reduce); });
    for (Shape shape : shapes)
      for (int n : {0, 1, 5, 100}) {
        std::vector<int32_t> v(static_cast<size_t>(n)), all = {-1000};
        for (int i = 0; i < n; i++) v[size_t(i)] = i * 37 % 101 - 50;
        auto report = Launch(k).field(1, v, {n}).field(2, all).run(k, in(shape, uint64_t(n)));
        int32_t sum = 0, most = -1000;
        uint32_t bits = 0;
        int64_t least = 0;
        for (int32_t e : v) {
          sum += e;
          bits ^= uint32_t(e);
          least = std::min<int64_t>(least, e);
          most = std::max(most, e);
        }
        CHECK(int32_t(report.results.at(0)) == sum);
        CHECK(report.results.at(1) == bits);
        CHECK(int64_t(report.results.at(2)) == least);
        CHECK(all[0] == most);
      }
  });
  CHECK(met);
}

TEST_CASE("an access below access lowering is at its natural alignment") {
  auto kernel = threads("%odd = offset %own, %one : address\nwrite<0> %odd, %zero");
  CHECK_THROWS_AS(run(*kernel, {1, 1}), InternalError);
}
