// Random numbers, printed lines, atomics, storage types, and the interpreter as a device.
#include <algorithm>
#include <set>

#include "backends/interpreter/compiler.h"
#include "backends/interpreter/random.h"
#include "quern/ir/text.h"
#include "tests/catch.h"
#include "tests/interpreter/launch.h"
#include "tests/interpreter/stages.h"

namespace quern::interpreter {
extern const runtime::Backend backend;
}

using namespace quern;
using namespace quern::ir;
using test::Launch;

TEST_CASE("Philox gives the numbers of its authors") {
  // Known answers of Random123 (kat_vectors, philox4x32 10).
  using interpreter::philox;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == 0x6627e8d5);
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == 0x408f276d);
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        0xd16cfe09);
}

TEST_CASE("an order is a permutation") {
  for (uint64_t count : {1, 2, 7, 64, 1000})
    for (uint64_t seed : {0, 1, 2, 99}) {
      interpreter::Order order(count, seed);
      std::set<uint64_t> seen;
      for (uint64_t k = 0; k < count; k++) seen.insert(order(k));
      CHECK(seen.size() == count);
      CHECK(*seen.rbegin() == count - 1);
      if (seed == 0) CHECK(order(count - 1) == count - 1);
    }
}

TEST_CASE("random numbers depend on iteration, call and loop only") {
  auto k = parse(R"(quern 1
    kernel @k level=structured results(u32, u32)
    binding field rank=2 u32 "x"
    binding field rank=1 u32 "y"
    body {
      %z = constant<0> : i32
      %n = extent<0.0> : i32
      %m = extent<0.1> : i32
      %firstl = launch_key : u64
      %firsto = ordinal : u32
      %firstk = iteration : u64
      %firstc = call_number : u32
      %first = random %firstl, %firsto, %firstk, %firstc : u32
      parallel ordinal=0 %z, %n, %z, %m {(%i: i32, %j: i32)
        %al = launch_key : u64
        %ao = ordinal : u32
        %ak = iteration : u64
        %ac = call_number : u32
        %a = random %al, %ao, %ak, %ac : u32
        %bl = launch_key : u64
        %bo = ordinal : u32
        %bk = iteration : u64
        %bc = call_number : u32
        %b = random %bl, %bo, %bk, %bc : u32
        %c = bit_xor %a, %b : u32
        store<0.0> %i, %j, %c
        yield
      }
      %l = extent<1.0> : i32
      parallel ordinal=1 %z, %l {(%i: i32)
        %al = launch_key : u64
        %ao = ordinal : u32
        %ak = iteration : u64
        %ac = call_number : u32
        %a = random %al, %ao, %ak, %ac : u32
        store<1.0> %i, %a
        yield
      }
      %secondl = launch_key : u64
      %secondo = ordinal : u32
      %secondk = iteration : u64
      %secondc = call_number : u32
      %second = random %secondl, %secondo, %secondk, %secondc : u32
      yield %first, %second
    })");
  for (Task::Walk walk : {Task::chunked, Task::element})
    test::each_stage(*k, test::walked(walk), [&](std::string_view pass, const Kernel& stage) {
      INFO("after " << pass);
      std::vector<uint32_t> x(15), y(9);
      auto report =
          Launch(stage).field(0, x, {3, 5}).field(1, y).random(11, 22).run(stage, {.seed = 3});
      auto number = [](uint32_t linear, uint32_t call, uint32_t loop) {
        return interpreter::philox({linear, 0, call, loop}, {11, 22});
      };
      for (uint32_t i = 0; i < 15; i++) CHECK(x[i] == (number(i, 0, 0) ^ number(i, 1, 0)));
      for (uint32_t i = 0; i < 9; i++) CHECK(y[i] == number(i, 0, 1));
      CHECK(report.results == std::vector<Bits>{number(0, 0, ~0u), number(0, 1, ~0u)});
    });
}

TEST_CASE("a random number is what its operands say, wherever it is drawn") {
  // The second loop draws the first one's second number again, of the iteration from the other end.
  auto k = parse(R"(quern 1
    kernel @k level=structured results(u32, u32, u32)
    binding field rank=1 u32 "call"
    binding field rank=1 u32 "first"
    binding field rank=1 u32 "again"
    body {
      %z = constant<0> : i32
      %one = constant<1> : i64
      %n = extent<0.0> : i32
      parallel ordinal=4 %z, %n {(%i: i32)
        %l = launch_key : u64
        %o = ordinal : u32
        %k = iteration : u64
        %c0 = call_number : u32
        %c1 = call_number : u32
        %r = random %l, %o, %k, %c1 : u32
        store<0.0> %i, %c1
        store<1.0> %i, %r
        yield
      }
      parallel ordinal=5 %z, %n {(%i: i32)
        %skip = call_number : u32
        %l = launch_key : u64
        %o = constant<4> : u32
        %last = convert %n : i64
        %here = convert %i : i64
        %from = sub %last, %here : i64
        %other = sub %from, %one : i64
        %k = bitcast %other : u64
        %c = load<0.0> %other : u32
        %r = random %l, %o, %k, %c : u32
        store<2.0> %other, %r
        yield
      }
      %l0 = constant<0> : u64
      %w0 = constant<0> : u32
      %zeros = random %l0, %w0, %l0, %w0 : u32
      %l1 = constant<18446744073709551615> : u64
      %w1 = constant<4294967295> : u32
      %ones = random %l1, %w1, %l1, %w1 : u32
      %key = constant<2999170649027065890> : u64
      %place = constant<9629550131187509896> : u64
      %call = constant<320440878> : u32
      %loop = constant<57701188> : u32
      %pi = random %key, %loop, %place, %call : u32
      yield %zeros, %ones, %pi
    })");
  for (Task::Walk walk : {Task::chunked, Task::element})
    test::each_stage(*k, test::walked(walk), [&](std::string_view pass, const Kernel& stage) {
      INFO("after " << pass);
      std::vector<uint32_t> call(9), first(9), again(9);
      auto report = Launch(stage).field(0, call).field(1, first).field(2, again).random(11, 22).run(
          stage, {.seed = 3});
      for (uint32_t i = 0; i < 9; i++) {
        CHECK(call[i] == 1);
        CHECK(first[i] == interpreter::philox({i, 0, 1, 4}, {11, 22}));
        CHECK(again[i] == first[i]);
      }
      // The known answers of the generator's authors (Random123, kat_vectors).
      CHECK(report.results == std::vector<Bits>{0x6627e8d5, 0x408f276d, 0xd16cfe09});
    });
}

TEST_CASE("lines past the ring's capacity are counted") {
  auto k = parse(R"(quern 1
    kernel @k level=structured
    binding scalar i32 "n"
    site print "{}" (i32)
    body {
      %z = constant<0> : i32
      %n = param<0> : i32
      parallel %z, %n {(%i: i32)
        print %i !0
        yield
      }
      yield
    })");
  test::each_stage(*k, test::walked(Task::chunked),
                   [&](std::string_view pass, const Kernel& stage) {
                     INFO("after " << pass);
                     auto report = Launch(stage).scalar(0, 5000).random(0, 9).run(stage);
                     CHECK(report.printed == 5000);
                     REQUIRE(report.prints.size() == 4096);
                     CHECK(report.prints[0].values[0] == 0);
                     CHECK(report.prints[4095].values[0] == 4095);
                     CHECK(report.prints[4095].launch == 9);
                     CHECK(Launch(stage).scalar(0, 3).run(stage).prints.size() == 3);
                   });
}

TEST_CASE("atomics") {
  // Each kind on one element in a loop of serial code: old values against C++.
  struct Case {
    const char* kind;
    int32_t (*next)(int32_t old, int32_t v);
  };
  const Case cases[] = {
      {"add", [](int32_t a, int32_t b) { return int32_t(uint32_t(a) + uint32_t(b)); }},
      {"mul", [](int32_t a, int32_t b) { return int32_t(uint32_t(a) * uint32_t(b)); }},
      {"min", [](int32_t a, int32_t b) { return std::min(a, b); }},
      {"max", [](int32_t a, int32_t b) { return std::max(a, b); }},
      {"bit_and", [](int32_t a, int32_t b) { return a & b; }},
      {"bit_or", [](int32_t a, int32_t b) { return a | b; }},
      {"bit_xor", [](int32_t a, int32_t b) { return a ^ b; }},
      {"exchange", [](int32_t, int32_t b) { return b; }},
  };
  for (const Case& c : cases) {
    auto k = parse(std::string(R"(quern 1
      kernel @k level=structured results(i32)
      binding field rank=1 i32 "x"
      binding scalar i32 "v"
      body {
        %z = constant<0> : i32
        %v = param<1> : i32
        %old = atomic.)") +
                   c.kind + R"(<0.0> %z, %v : i32
        yield %old
      })");
    test::each_stage(*k, test::walked(Task::chunked), [&](std::string_view pass, const Kernel& s) {
      INFO(c.kind << " after " << pass);
      for (int32_t a : {0, 5, -7, INT32_MIN, INT32_MAX})
        for (int32_t b : {1, -1, 3, INT32_MIN}) {
          std::vector<int32_t> x = {a};
          auto report = Launch(s).field(0, x).scalar(1, uint32_t(b)).run(s);
          CHECK(report.results.at(0) == uint32_t(a));
          CHECK(x[0] == c.next(a, b));
        }
    });
  }
}

TEST_CASE("compare and swap, and narrow storage") {
  auto k = parse(R"(quern 1
    kernel @k level=structured results(i16, i16, b1)
    binding field rank=1 i16 "x"
    binding field rank=1 b1 "f"
    body {
      %z = constant<0> : i32
      %o = constant<1> : i32
      %a = constant<-3> : i16
      %b = constant<1000> : i16
      %first = atomic.cas<0.0> %o, %a, %b : i16
      %second = atomic.cas<0.0> %o, %a, %first : i16
      %flag = load<1.0> %z : b1
      store<1.0> %o, %flag
      yield %first, %second, %flag
    })");
  test::each_stage(*k, test::walked(Task::chunked), [&](std::string_view pass, const Kernel& s) {
    INFO("after " << pass);
    std::vector<int16_t> x = {-3, -3, -3};
    std::vector<uint8_t> f = {7, 9, 9};
    auto report = Launch(s).field(0, x).field(1, f).run(s);
    CHECK(report.results == std::vector<Bits>{0xfffd, 1000, 1});
    CHECK(x == std::vector<int16_t>{-3, 1000, -3});
    CHECK(f == std::vector<uint8_t>{7, 1, 9});
  });
}

TEST_CASE("the interpreter as a device") {
  std::string why;
  auto targets = interpreter::backend.probe(why);
  REQUIRE(targets.size() == 1);
  auto driver = interpreter::backend.open(targets[0]);
  auto k = parse(R"(quern 1
    kernel @k level=structured
    binding scalar i32 "a"
    binding field rank=1 i32 "x"
    body {
      %z = constant<0> : i32
      %a = param<0> : i32
      %n = extent<1.0> : i32
      parallel %z, %n {(%i: i32)
        %v = add %i, %a : i32
        store<1.0> %i, %v
        yield
      }
      yield
    })");
  split(*k);
  runtime::Image image = interpreter::compiler().compile(*k, targets[0]);
  CHECK(interpreter::compiler().listing(*k, targets[0], "ir").find("kernel @k") !=
        std::string::npos);
  CHECK_THROWS_AS(interpreter::compiler().listing(*k, targets[0], "ptx"), Error);
  auto executable = driver->load(image);

  runtime::Address memory = driver->allocate(4 * 6);
  CHECK(memory % 64 == 0);
  runtime::Command fill = runtime::Fill{memory, 24, 9};
  driver->submit({&fill, 1});
  std::vector<int32_t> x(6);
  driver->download(std::as_writable_bytes(std::span(x)), memory);
  CHECK(x == std::vector<int32_t>(6, 9));

  abi::ErrorRecord error;
  Launch block(*k);
  block.scalar(0, 100).field(1, driver->host_pointer(memory), {6}, 4).error_record(error);
  runtime::Launch launch;
  launch.executable = executable.get();
  launch.work = runtime::Elements{6};
  launch.args = reinterpret_cast<runtime::Address>(block.args());
  uint32_t guard = 0;
  launch.guard = reinterpret_cast<runtime::Address>(&guard);
  runtime::Command command = launch;
  driver->wait(driver->submit({&command, 1}));
  driver->download(std::as_writable_bytes(std::span(x)), memory);
  CHECK(x == std::vector<int32_t>(6, 9));  // the guard held it back
  guard = 1;
  driver->wait(driver->submit({&command, 1}));
  driver->download(std::as_writable_bytes(std::span(x)), memory);
  CHECK(x == std::vector<int32_t>{100, 101, 102, 103, 104, 105});
  driver->release(memory);
  CHECK_THROWS_AS(driver->allocate(uint64_t(1) << 60), Error);
}
