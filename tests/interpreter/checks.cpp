// What the oracle reports: failed checks, indices out of range, races, overflow, NaN.
#include <cmath>

#include "quern/ir/text.h"
#include "tests/catch.h"
#include "tests/interpreter/launch.h"
#include "tests/interpreter/stages.h"

using namespace quern;
using namespace quern::ir;
using interpreter::Finding;
using interpreter::Options;
using test::Launch;

namespace {

/// A kernel over `x` (i32) and `y` (i32) of one axis: one parallel loop over x with this body.
std::unique_ptr<Kernel> over_x(const std::string& body, const std::string& modes = "") {
  return parse("quern 1\nkernel @k level=structured" + modes + R"(
    binding field rank=1 i32 "x"
    binding field rank=1 i32 "y"
    site check "{} is odd" (i32)
    body {
      %z = constant<0> : i32
      %o = constant<1> : i32
      %n = extent<0.0> : i32
      parallel %z, %n {(%i: i32)
)" + body + "\nyield\n}\nyield\n}\n",
               "user.cpp");
}

std::vector<Finding> races(const std::string& body) {
  auto k = over_x(body);
  std::vector<int32_t> x(4, 3), y(4, 3);
  Options options;
  options.check_races = true;
  return Launch(*k).field(0, x).field(1, y).run(*k, options).findings;
}

}  // namespace

TEST_CASE("the first failed check is recorded, the rest of the task goes on") {
  auto k = over_x(R"(
      %v = load<0.0> %i : i32
      %b = bit_and %v, %o : i32
      %even = eq %b, %z : b1
      check %even, %v !0
      store<1.0> %i, %v)");
  for (Task::Walk walk : {Task::chunked, Task::element})
    test::each_stage(*k, test::walked(walk), [&](std::string_view pass, const Kernel& stage) {
      INFO("after " << pass);
      std::vector<int32_t> x = {2, 4, 6, 8, 10, 13, 14}, y(7);
      auto report = Launch(stage).field(0, x).field(1, y).random(0, 42).run(stage);
      CHECK(report.error.state != 0);
      CHECK(report.error.site == 0);
      CHECK(report.error.iteration == 5);
      REQUIRE(report.error.count == 1);
      CHECK(report.error.values[0] == 13);
      CHECK(report.error.launch == 42);
      CHECK(y == x);
    });
}

TEST_CASE("after a failed check no further task runs and loops of tasks end") {
  auto k = parse(R"(quern 1
    kernel @k level=structured
    binding field rank=1 i32 "x"
    site check "always" ()
    body {
      %z = constant<0> : i32
      %o = constant<1> : i32
      %many = constant<1000000000> : i32
      %n = extent<0.0> : i32
      loop %z, %many, %o {(%r: i32)
        parallel %z, %n {(%i: i32)
          %v = load<0.0> %i : i32
          %w = add %v, %o : i32
          store<0.0> %i, %w
          %three = constant<3> : i32
          %ok = lt %w, %three : b1
          check %ok !0
          yield
        }
        yield
      }
      parallel %z, %n {(%i: i32)
        store<0.0> %i, %z
        yield
      }
      yield
    })");
  test::each_stage(*k, test::walked(Task::chunked),
                   [&](std::string_view pass, const Kernel& stage) {
                     INFO("after " << pass);
                     std::vector<int32_t> x(5);
                     Options options;
                     options.max_steps = 10'000;
                     auto report = Launch(stage).field(0, x).run(stage, options);
                     CHECK(report.ended);
                     CHECK(report.error.state != 0);
                     CHECK(x == std::vector<int32_t>(5, 3));
                   });
}

TEST_CASE("indices out of range: substitutes, the error record, findings") {
  // y[x[i]] += 10, read and written out of range for some.
  auto k = over_x(R"(
      %at = load<0.0> %i : i32
      %v = load<1.0> %at : i32
      %ten = constant<10> : i32
      %w = add %v, %ten : i32
      store<1.0> %at, %w @ "user.cpp":31
      store<0.0> %i, %v)",
                  " modes=checked");
  test::each_stage(*k, test::walked(Task::chunked),
                   [&](std::string_view pass, const Kernel& stage) {
                     INFO("after " << pass);
                     std::vector<int32_t> x = {1, -1, 4, 0}, y = {5, 6, 7, 8};
                     auto report = Launch(stage).field(0, x).field(1, y).run(stage);
                     CHECK(x == std::vector<int32_t>{6, 0, 0, 5});
                     CHECK(y == std::vector<int32_t>{15, 16, 7, 8});
                     CHECK(report.error.state != 0);
                     CHECK(report.error.iteration == 1);
                     REQUIRE(report.error.count == 3);
                     CHECK(int64_t(report.error.values[0]) == -1);
                     CHECK(report.error.values[1] == 0);
                     CHECK(report.error.values[2] == 4);
                   });
  Options options;
  options.check_bounds = true;
  std::vector<int32_t> x = {1, -1, 4, 0}, y = {5, 6, 7, 8};
  auto report = Launch(*k).field(0, x).field(1, y).run(*k, options);
  REQUIRE(report.findings.size() == 4);
  CHECK(report.findings[2].kind == Finding::bounds);
  CHECK(report.findings[2].message == "index 4 on axis 0 of y is out of range: the extent is 4");
  CHECK(report.findings[3].loc.line == 31);
}

TEST_CASE("division by zero and conversions that overflow are errors in checked mode") {
  auto k = parse(R"(quern 1
    kernel @k level=structured modes=checked results(i32, i32, i32, u8)
    binding scalar i32 "a"
    binding scalar i32 "b"
    binding scalar f32 "f"
    body {
      %a = param<0> : i32
      %b = param<1> : i32
      %f = param<2> : f32
      %q = div %a, %b : i32
      %r = rem %a, %b : i32
      %c = convert %f : i32
      %n = convert %a : u8
      yield %q, %r, %c, %n
    })");
  auto run = [&](int32_t a, int32_t b, float f, bool fails, std::vector<Bits> results) {
    test::each_stage(*k, test::walked(Task::chunked), [&](std::string_view pass, const Kernel& s) {
      INFO("after " << pass << ": " << a << " " << b << " " << f);
      auto report =
          Launch(s).scalar(0, uint32_t(a)).scalar(1, uint32_t(b)).scalar(2, bits_of(f)).run(s);
      CHECK((report.error.state != 0) == fails);
      if (!fails) CHECK(report.results == results);
    });
  };
  run(7, 2, 2.9f, false, {3, 1, 2, 7});
  run(-7, 2, -2147483648.0f, false, {uint32_t(-3), uint32_t(-1), 0x80000000, 249});
  run(300, -1, 2147483520.0f, false, {uint32_t(-300), 0, 2147483520, 44});
  run(INT32_MIN, -1, 0, false, {0x80000000, 0, 0, 0});
  run(7, 0, 0, true, {});
  run(7, 1, 2147483648.0f, true, {});
  run(7, 1, -2147483904.0f, true, {});
  run(7, 1, NAN, true, {});
}

TEST_CASE("races between iterations") {
  // every iteration reads its neighbour and writes its own
  auto found = races(R"(
      %j = rem %i, %n : i32
      %k = bit_xor %j, %o : i32
      %v = load<0.0> %k : i32 @ "user.cpp":7
      store<0.0> %i, %v @ "user.cpp":8)");
  REQUIRE(found.size() == 4);
  CHECK(found[0].kind == Finding::race);
  CHECK(found[0].message ==
        "iteration 1 reads x[0] at user.cpp:7, which iteration 0 writes at user.cpp:8");
  CHECK(found[0].loc.line == 7);
  CHECK(found[0].other.line == 8);

  // different bits to one place; the same bits; own elements
  CHECK(races("store<1.0> %z, %i").size() == 1);
  CHECK(races("store<1.0> %z, %n").empty());
  CHECK(races("store<0.0> %i, %n\n %v = load<0.0> %i : i32\n store<0.0> %i, %v").empty());
  // an iteration that stores two values where another stores one of them
  CHECK(races("store<1.0> %z, %n\n store<1.0> %z, %o").size() == 1);
  // atomics: among themselves, with a plain read, with a plain write
  CHECK(races("%v = atomic.add<1.0> %z, %i : i32").empty());
  CHECK(races("%v = atomic.add<1.0> %z, %i : i32\n %w = atomic.load<1.0> %z : i32").empty());
  CHECK(races("%v = atomic.add<1.0> %z, %i : i32\n %w = load<1.0> %z : i32").size() == 1);
  CHECK(races("%v = atomic.load<1.0> %z : i32\n store<1.0> %z, %n").size() == 1);
  CHECK(races("%v = atomic.load<1.0> %z : i32\n %w = load<1.0> %z : i32").empty());
}

TEST_CASE("fields that share memory race like one") {
  auto k = over_x("%j = bit_xor %i, %o : i32\n %v = load<1.0> %j : i32\n store<0.0> %i, %v");
  std::vector<int32_t> x(4, 1), y(4, 1);
  Options options;
  options.check_races = true;
  CHECK(Launch(*k).field(0, x).field(1, y).run(*k, options).findings.empty());
  CHECK(Launch(*k).field(0, x).field(1, x).run(*k, options).findings.size() == 4);
}

TEST_CASE("accesses of different tasks are no race") {
  auto k = parse(R"(quern 1
    kernel @k level=structured
    binding field rank=1 i32 "x"
    body {
      %z = constant<0> : i32
      %o = constant<1> : i32
      %n = extent<0.0> : i32
      parallel %z, %n {(%i: i32)
        store<0.0> %i, %i
        yield
      }
      parallel %z, %n {(%i: i32)
        %v = load<0.0> %z : i32
        yield
      }
      yield
    })");
  for (bool split_first : {false, true}) {
    auto copy = clone(*k);
    if (split_first) split(*copy);
    std::vector<int32_t> x(6);
    Options options;
    options.check_races = true;
    CHECK(Launch(*copy).field(0, x).run(*copy, options).findings.empty());
  }
}

TEST_CASE("overflow and NaN, where asked for") {
  auto k = parse(R"(quern 1
    kernel @k level=structured results(i32, i8, u32, f32)
    binding scalar i32 "a"
    binding scalar f32 "f"
    body {
      %a = param<0> : i32
      %f = param<1> : f32
      %s = add %a, %a : i32
      %b = convert %a : i8
      %c = neg %b : i8
      %u = convert %a : u32
      %v = mul %u, %u : u32
      %d = sub %f, %f : f32
      %e = mul %d, %f : f32
      yield %s, %c, %v, %e
    })");
  auto findings = [&](int32_t a, float f) {
    Options options;
    options.check_overflow = options.check_nan = true;
    std::vector<std::string> out;
    auto report = Launch(*k).scalar(0, uint32_t(a)).scalar(1, bits_of(f)).run(*k, options);
    for (const Finding& found : report.findings) out.push_back(found.message);
    return out;
  };
  using Messages = std::vector<std::string>;
  CHECK(findings(100, 1).empty());
  CHECK(findings(0x40000000, 1) == Messages{"add overflows i32"});
  CHECK(findings(128, 1) == Messages{"neg overflows i8"});
  CHECK(findings(1 << 20, 1).empty());  // unsigned integers wrap
  CHECK(findings(1, INFINITY) == Messages{"sub makes a NaN of numbers"});
  CHECK(findings(1, NAN).empty());
}
