// What single lowerings promise: random numbers, reductions, walks, checks, atomics.
#include <array>
#include <cmath>

#include "ir/passes/checks/check_access.h"
#include "ir/passes/record/add_sites.h"
#include "ir/passes/tasks/bind.h"
#include "ir/passes/tasks/open_tasks.h"
#include "ir/passes/tasks/split_tasks.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "tests/catch.h"
#include "tests/passes/run.h"

using namespace quern;
using namespace quern::ir;
using test::Fields;

namespace {

std::unique_ptr<Kernel> from_text(const std::string& text) { return parse("quern 1\n" + text); }

Signature signature_of(const Kernel& kernel) {
  Signature s;
  for (uint32_t k = 0; k < kernel.bindings.size(); k++) s.fields.push_back({true, k});
  s.modes = kernel.modes;
  return s;
}

void prepare(Kernel& kernel, const TargetTraits& traits = {}) {
  optimise(kernel);
  split(kernel);
  lower(kernel, signature_of(kernel), traits);
}

/// A kernel over fields x and y (i32) of one axis and what `declarations` adds: `before`, then one
/// parallel loop over x with this body. %z is 0, %one 1, %n the extent of x.
std::unique_ptr<Kernel> over_x(const std::string& body, const std::string& modes = "",
                               const std::string& declarations = "", const std::string& before = "",
                               const std::string& bounds = "%z, %n") {
  return from_text("kernel @k level=structured" + modes + R"(
    binding field rank=1 i32 "x"
    binding field rank=1 i32 "y")" +
                   declarations + R"(
    body {
      %z = constant<0> : i32
      %one = constant<1> : i32
      %n = extent<0.0> : i32
      )" + before + "\nparallel " +
                   bounds + " {(%i: i32)\n" + body + "\nyield\n}\nyield\n}");
}

/// A kernel that runs the loop `body` over x while x[condition] is 0.
std::unique_ptr<Kernel> while_zero(const std::string& condition, const std::string& body,
                                   const std::string& head) {
  return from_text("kernel @k level=structured" + head + R"(
    body {
      %z = constant<0> : i32
      %n = extent<0.0> : i32
      while {()
        %v = load<0.0> )" +
                   condition + R"( : i32
        %go = eq %v, %z : b1
        yield %go
      } {()
        parallel %z, %n {(%i: i32)
          )" + body +
                   "\nyield\n}\nyield\n}\nyield\n}");
}

/// Both conditions end a repeat where a check failed.
test::Outcome expect_ended(Kernel& kernel) {
  prepare(kernel);
  auto out = test::run(kernel, Fields{{0, 0}}, {.max_steps = 10'000});
  CHECK(out.ended);
  CHECK(out.failed);
  return out;
}

size_t count(const Kernel& kernel, Op op) {
  size_t n = 0;
  walk(const_cast<Kernel&>(kernel), [&](Inst* inst) { n += inst->is(op); });
  return n;
}

/// Philox4x32-10 as its paper defines it.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = uint64_t(0xD2511F53) * c[0], p1 = uint64_t(0xCD9E8D57) * c[2];
    c = {uint32_t(p1 >> 32) ^ c[1] ^ key[0], uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ key[1],
         uint32_t(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

/// A deterministic reduction by the words of docs/semantics.md.
std::vector<float> chunk_values(const std::vector<float>& in) {
  std::vector<float> out;
  for (size_t first = 0; first < in.size(); first += 1024) {
    float partial[32];
    for (float& p : partial) p = -0.0f;
    for (size_t k = 0; k < 1024 && first + k < in.size(); k++) partial[k % 32] += in[first + k];
    for (int half = 16; half > 0; half /= 2)
      for (int j = 0; j < half; j++) partial[j] += partial[j + half];
    out.push_back(partial[0]);
  }
  return out;
}

}  // namespace

TEST_CASE("the test's Philox gives the numbers of the Random123 distribution") {
  CHECK(philox({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff})[0] ==
        0x408f276d);
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})[0] ==
        0xd16cfe09);
}

TEST_CASE("random numbers depend on iteration, call and loop; serial calls are counted through") {
  auto kernel = from_text(R"(
    kernel @k level=structured
    binding field rank=1 u32 "x"
    body {
      %z = constant<0> : i32
      %one = constant<1> : i32
      %n = extent<0.0> : i32
      %s0l = launch_key : u64
      %s0o = ordinal : u32
      %s0k = iteration : u64
      %s0c = call_number : u32
      %s0 = random %s0l, %s0o, %s0k, %s0c : u32
      store<0.0> %z, %s0
      parallel ordinal=1 %one, %n {(%i: i32)
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
        store<0.0> %i, %c
        yield
      }
      %s1l = launch_key : u64
      %s1o = ordinal : u32
      %s1k = iteration : u64
      %s1c = call_number : u32
      %s1 = random %s1l, %s1o, %s1k, %s1c : u32
      %x = bit_xor %s0, %s1 : u32
      store<0.0> %z, %x
      yield
    })");
  for (Task::Walk way : {Task::chunked, Task::element}) {
    auto copy = clone(*kernel);
    TargetTraits traits;
    traits.walk = way;
    prepare(*copy, traits);
    auto out = test::run(*copy, Fields{std::vector<Bits>(7)}, {.grain = 2});
    for (uint32_t k = 1; k < 7; k++)
      CHECK(out.fields[0][k] ==
            (philox({k - 1, 0, 0, 1}, {7, 2})[0] ^ philox({k - 1, 0, 1, 1}, {7, 2})[0]));
    CHECK(out.fields[0][0] ==
          (philox({0, 0, 0, ~0u}, {7, 2})[0] ^ philox({0, 0, 1, ~0u}, {7, 2})[0]));
  }
}

TEST_CASE("a deterministic sum adds in the stated order, level by level") {
  size_t n = GENERATE(size_t(0), size_t(1), size_t(1000), size_t(1025), size_t(1024 * 1024 + 70));
  bool by_mode = n == 1025;
  auto kernel = from_text(R"(
    kernel @k level=structured results(f32)
    binding field rank=1 f32 "x"
    body {
      %z = constant<0> : i32
      %n = extent<0.0> : i32
      %s = slot<1> : slot f32
      %start = constant<0.1> : f32
      put %s, %start
      parallel)" + std::string(by_mode ? "" : " deterministic") +
                          R"( %z, %n {(%i: i32)
        %v = load<0.0> %i : f32
        reduce.add %s, %v
        yield
      }
      %r = get %s : f32
      yield %r
    })");
  kernel->modes.strict = by_mode;
  prepare(*kernel);
  std::vector<float> values;
  Fields in(1);
  uint32_t state = 12345;
  for (size_t k = 0; k < n; k++) {
    state = state * 1664525 + 1013904223;
    values.push_back(float(int32_t(state)) * 1e-7f);
    in[0].push_back(bits_of(values.back()));
  }
  auto out = test::run(*kernel, in);
  float expected = 0.1f;
  if (n) {
    std::vector<float> level = chunk_values(values);
    while (level.size() > 1) level = chunk_values(level);
    expected += level[0];
  }
  CHECK(out.results[0] == bits_of(expected));
}

TEST_CASE("a walk visits each index of its domain once, in row-major order") {
  auto kernel = from_text(R"(
    kernel @k level=structured
    binding scalar i32 "n"
    site print "" (i32, i32, i32)
    body {
      %lo = constant<-1> : i32
      %two = constant<2> : i32
      %five = constant<5> : i32
      %n = param<0> : i32
      parallel %lo, %two, %two, %five, %lo, %n {(%i: i32, %j: i32, %k: i32)
        print %i, %j, %k !0
        yield
      }
      yield
    })");
  for (int n : {-3, -1, 0, 1, 4}) {
    std::vector<Bits> expected;
    for (int i = -1; i < 2; i++)
      for (int j = 2; j < 5; j++)
        for (int k = -1; k < n; k++)
          for (int v : {i, j, k}) expected.push_back(uint32_t(v));
    for (uint64_t grain = 1; grain < 50; grain += 3) {
      for (Task::Walk way : {Task::chunked, Task::element}) {
        auto copy = clone(*kernel);
        TargetTraits traits;
        traits.walk = way;
        prepare(*copy, traits);
        auto out = test::run(*copy, Fields{{Bits(uint32_t(n))}},
                             {.grain = grain, .blocks = 1, .block_threads = 1});
        REQUIRE(out.printed == expected);
      }
    }
  }
}

TEST_CASE("an index out of range is reported, the access does not happen") {
  auto kernel = over_x(R"(
        %at = add %i, %s : i32
        %v = load<1.0> %at : i32
        store<0.0> %i, %v
        store<1.0> %at, %z)",
                       " modes=checked", "\nbinding scalar i32 \"shift\"", "%s = param<2> : i32");
  prepare(*kernel);
  Fields in = {{9, 9, 9, 9}, {5, 6, 7, 8}, {2}};
  auto out = test::run(*kernel, in, {.grain = 100});
  REQUIRE(out.failed);
  CHECK(kernel->sites.at(out.site).kind == Site::bounds);
  CHECK(out.values == std::vector<Bits>{4, 0, 4});
  CHECK(out.iteration == 2);
  CHECK(out.fields[0] == std::vector<Bits>{7, 8, 0, 0});
  CHECK(out.fields[1] == std::vector<Bits>{5, 6, 0, 0});

  in[2] = {uint32_t(-1)};
  out = test::run(*kernel, in, {.grain = 1});
  REQUIRE(out.failed);
  CHECK(out.values == std::vector<Bits>{Bits(-1), 0, 4});
  // The task's other chunks go on.
  CHECK(out.fields[0] == std::vector<Bits>{0, 5, 6, 7});
}

TEST_CASE("one test before a loop vouches for its indices, but never wrongly") {
  auto kernel = over_x(R"(
        %below = sub %i, %two : i32
        %above = add %i, %one : i32
        %a = load<1.0> %below : i32
        %b = load<1.0> %above : i32
        %s = add %a, %b : i32
        store<0.0> %i, %s)",
                       " modes=checked", R"(
    binding scalar i32 "from"
    binding scalar i32 "to")",
                       R"(
      %two = constant<2> : i32
      %from = param<2> : i32
      %to = param<3> : i32)",
                       "%from, %to");
  prepare(*kernel);
  for (int from = -3; from < 8; from++)
    for (int to = -3; to < 10; to++)
      for (size_t size : {5, 6, 7}) {
        Fields in = {{0, 0, 0, 0, 0, 0}, {}, {Bits(uint32_t(from))}, {Bits(uint32_t(to))}};
        for (size_t k = 0; k < size; k++) in[1].push_back(10 + k);
        // The first access out of range in program order, and what the rest leaves behind.
        std::vector<Bits> expected = in[0], values;
        auto reach = [&](int64_t at, size_t extent) {
          if (at >= 0 && at < int64_t(extent)) return true;
          if (values.empty()) values = {Bits(at), 0, extent};
          return false;
        };
        for (int i = from; i < to; i++) {
          Bits a = reach(i - 2, size) ? in[1][size_t(i - 2)] : 0;
          Bits b = reach(i + 1, size) ? in[1][size_t(i + 1)] : 0;
          if (reach(i, 6)) expected[size_t(i)] = a + b;
        }
        auto out = test::run(*kernel, in, {.grain = 2});
        REQUIRE(out.failed == !values.empty());
        REQUIRE(out.values == values);
        REQUIRE(out.fields[0] == expected);
      }
}

TEST_CASE("checks of indices that are in range by the loop's bounds are left out") {
  auto checks =
      [](const std::string& lo, const std::string& hi, const std::string& index) {
        auto kernel = from_text(R"(
      kernel @k level=structured modes=checked
      binding field rank=1 i32 "x"
      body {
        %lo = constant<)" + lo + R"(> : i32
        %one = constant<1> : i32
        %n = extent<0.0> : i32
        %m = sub %n, %one : i32
        parallel %lo, )" + hi + R"( {(%i: i32)
          %up = add %i, %one : i32
          %down = sub %i, %one : i32
          store<0.0> )" + index +
                                R"(, %lo
          yield
        }
        yield
      })");
        add_sites(*kernel);
        split_tasks(*kernel);
        bind(*kernel, signature_of(*kernel));
        open_tasks(*kernel, {});
        check_access(*kernel);
        return count(*kernel, Op::check);
      };
  CHECK(checks("0", "%n", "%i") == 0);
  CHECK(checks("0", "%m", "%up") == 0);
  CHECK(checks("1", "%m", "%down") == 0);
  CHECK(checks("1", "%n", "%down") == 0);
  CHECK(checks("-1", "%n", "%i") == 1);
  CHECK(checks("0", "%n", "%up") == 1);
  CHECK(checks("0", "%n", "%down") == 1);
  CHECK(checks("0", "%one", "%i") == 1);
}

TEST_CASE("an array that loops share is checked too") {
  auto kernel = from_text(R"(
    kernel @k level=structured modes=checked results(i32)
    binding field rank=1 i32 "x"
    binding scalar i32 "at"
    body {
      %z = constant<0> : i32
      %one = constant<1> : i32
      %seven = constant<7> : i32
      %n = extent<0.0> : i32
      %at = param<1> : i32
      %a = slot<3> : slot i32
      put %a, %one, %seven
      put %a, %at, %seven
      parallel %z, %n {(%i: i32)
        %v = get %a, %i : i32
        store<0.0> %i, %v
        yield
      }
      %r = get %a, %at : i32
      yield %r
    })");
  prepare(*kernel);
  auto run = [&](int at, size_t size) {
    Fields in = {std::vector<Bits>(size, 1), {Bits(uint32_t(at))}};
    return test::run(*kernel, in, {.grain = 100});
  };
  auto out = run(2, 3);
  CHECK_FALSE(out.failed);
  CHECK(out.fields[0] == std::vector<Bits>{0, 7, 7});
  CHECK(out.results[0] == 7);
  out = run(2, 4);
  CHECK(out.failed);
  CHECK(out.values == std::vector<Bits>{3, 3});
  CHECK(out.fields[0] == std::vector<Bits>{0, 7, 7, 0});
  out = run(-1, 3);
  CHECK(out.failed);
  CHECK(out.values == std::vector<Bits>{Bits(-1), 3});
}

TEST_CASE("division by zero and conversions that overflow are reported with their values") {
  auto kernel = from_text(R"(
    kernel @k level=structured modes=checked results(i32, u8)
    binding scalar i32 "a"
    binding scalar i32 "b"
    binding scalar f32 "c"
    body {
      %a = param<0> : i32
      %b = param<1> : i32
      %c = param<2> : f32
      %q = div %a, %b : i32
      %u = convert %c : u8
      yield %q, %u
    })");
  prepare(*kernel);
  auto run = [&](int a, int b, float c) {
    return test::run(*kernel, {{Bits(uint32_t(a))}, {Bits(uint32_t(b))}, {bits_of(c)}});
  };
  auto out = run(7, 2, 255.9f);
  CHECK_FALSE(out.failed);
  CHECK(out.results == std::vector<Bits>{3, 255});
  CHECK_FALSE(run(7, 2, -0.9f).failed);
  out = run(7, 0, 1.0f);
  CHECK(out.failed);
  CHECK(kernel->sites[out.site].kind == Site::division);
  out = run(7, 1, 256.0f);
  CHECK(out.failed);
  CHECK(kernel->sites[out.site].kind == Site::conversion);
  CHECK(out.values == std::vector<Bits>{bits_of(256.0f)});
  CHECK(run(7, 1, -1.0f).failed);
  CHECK(run(7, 1, f32_of(0x7fc00000)).failed);
}

TEST_CASE("a condition that a failed launch did not compute ends the repeat") {
  expect_ended(*while_zero("%z", "%never = lt %i, %z : b1\ncheck %never !0",
                           "\nbinding field rank=1 i32 \"x\"\nsite check \"bad\" ()"));
}

TEST_CASE("a condition that fails itself ends the repeat in checked mode") {
  auto out = expect_ended(
      *while_zero("%n", "store<0.0> %i, %i", " modes=checked\nbinding field rank=1 i32 \"x\""));
  CHECK(out.fields[0] == std::vector<Bits>{0, 0});
}

TEST_CASE("a loop over a field is lowered as one over its bounds") {
  auto lowered = [](bool names_field, bool checked, bool based, Task::Walk walk) {
    const std::string bounds = R"(
      %f0 = first<0.0> : i32
      %n0 = extent<0.0> : i32
      %e0 = add %f0, %n0 : i32
      %f1 = first<0.1> : i32
      %n1 = extent<0.1> : i32
      %e1 = add %f1, %n1 : i32
      parallel %f0, %e0, %f1, %e1)";
    auto kernel = from_text(std::string("kernel @k level=structured") +
                            (checked ? " modes=checked" : "") + R"(
      binding field rank=2 f32 "u"
      binding field rank=2 f32 "v"
      body {)" + (names_field ? "parallel over=0" : bounds) +
                            R"( {(%i: i32, %j: i32)
        %one = constant<1> : i32
        %n = extent<0.1> : i32
        %f = first<0.1> : i32
        %end = add %f, %n : i32
        %right = add %j, %one : i32
        %inside = lt %right, %end : b1
        if %inside {
          %a = load<0.0> %i, %j : f32
          %b = load<0.0> %i, %right : f32
          %c = add %a, %b : f32
          store<1.0> %i, %j, %c
          yield
        } { yield }
        yield
      }
      yield })");
    optimise(*kernel);
    split(*kernel);
    Signature s = signature_of(*kernel);
    for (Signature::Field& field : s.fields) field.zero_based = !based;
    TargetTraits traits;
    traits.walk = walk;
    lower(*kernel, s, traits);
    return print(*kernel);
  };
  for (bool checked : {false, true})
    for (bool based : {false, true})
      for (Task::Walk walk : {Task::chunked, Task::element}) {
        INFO(checked << based << int(walk));
        CHECK(lowered(true, checked, based, walk) == lowered(false, checked, based, walk));
      }
}

TEST_CASE("atomics that a target lacks work through compare-and-swap") {
  auto kernel = from_text(R"(
    kernel @k level=structured
    binding field rank=1 u8 "bytes"
    binding field rank=1 i16 "shorts"
    binding field rank=1 f32 "floats"
    binding field rank=1 f64 "doubles"
    body {
      %z = constant<0> : i32
      %n = constant<12> : i32
      %one = constant<1> : i32
      %three = constant<3> : i32
      parallel %z, %n {(%i: i32)
        %k = rem %i, %three : i32
        %b = convert %i : u8
        %old = atomic.add<0.0> %k, %b : u8
        %s = convert %i : i16
        %minus = neg %s : i16
        %lowest = atomic.min<1.0> %k, %minus : i16
        %f = convert %i : f32
        %sum = atomic.add<2.0> %k, %f : f32
        %d = convert %i : f64
        %most = atomic.max<3.0> %k, %d : f64
        yield
      }
      yield
    })");
  TargetTraits traits;
  traits.narrow_atomics = false;
  traits.float_atomic_add[0] = traits.float_atomic_add[1] = false;
  prepare(*kernel, traits);
  walk(*kernel, [](Inst* inst) {
    if (!inst->is(Op::rmw)) return;
    CHECK(bit_width(inst->elem) >= 32);
    CHECK(!is_float(inst->elem));
  });
  Fields in(4);
  in[0] = {250, 1, 2, 77};
  in[1] = {5, 5, 5, 77};
  in[2].assign(3, bits_of(0.5f));
  in[3].assign(3, bits_of(-1.0));
  auto out = test::run(*kernel, in, {.grain = 5});
  CHECK(out.fields[0] ==
        std::vector<Bits>{(250 + 0 + 3 + 6 + 9) % 256, 1 + 1 + 4 + 7 + 10, 2 + 2 + 5 + 8 + 11, 77});
  CHECK(out.fields[1] == std::vector<Bits>{uint16_t(-9), uint16_t(-10), uint16_t(-11), 77});
  CHECK(out.fields[2] == std::vector<Bits>{bits_of(18.5f), bits_of(22.5f), bits_of(26.5f)});
  CHECK(out.fields[3] == std::vector<Bits>{bits_of(9.0), bits_of(10.0), bits_of(11.0)});
}

TEST_CASE("functions and fused products that a target lacks are the bodies of ir/math") {
  auto kernel = from_text(R"(
    kernel @k level=structured results(f32, f64, f32, f32)
    binding scalar f32 "a"
    binding scalar f64 "b"
    body {
      %a = param<0> : f32
      %b = param<1> : f64
      %p = pow %a, %a : f32
      %s = sin %b : f64
      %f = fma %a, %a, %p : f32
      %r = sqrt %a : f32
      %q = div %r, %a : f32
      yield %p, %s, %f, %q
    })");
  for (bool strict : {false, true}) {
    auto copy = clone(*kernel);
    copy->modes.strict = strict;
    TargetTraits traits;
    traits.fma_exact[0] = traits.fma_exact[1] = false;
    traits.div_exact = traits.sqrt_exact = false;
    traits.native_math = {{Op::pow, Type::f32}, {Op::sin, Type::f64}};
    prepare(*copy, traits);
    CHECK(count(*copy, Op::fma) == 0);
    CHECK(count(*copy, Op::pow) == (strict ? 0 : 1));
    CHECK(count(*copy, Op::sin) == (strict ? 0 : 1));
    if (!strict) continue;
    walk(*copy, [](Inst* inst) {
      if (inst->is(Op::div) || inst->is(Op::sqrt)) CHECK(inst->type() == Type::f64);
    });
    float a = 1.7f;
    Fields in = {{bits_of(a)}, {bits_of(0.25)}};
    auto out = test::run(*copy, in);
    CHECK(f32_of(out.results[0]) == Approx(std::pow(1.7, 1.7)));
    CHECK(f64_of(out.results[1]) == Approx(std::sin(0.25)));
    CHECK(out.results[2] == bits_of(std::fma(a, a, f32_of(out.results[0]))));
    CHECK(out.results[3] == bits_of(std::sqrt(a) / a));
  }
}

TEST_CASE("iterations taken together through an inner loop do what they did one by one") {
  auto kernel = from_text(R"(
    kernel @k level=structured
    binding field rank=1 i32 "start"
    binding field rank=1 i32 "values"
    binding field rank=1 i32 "trace"
    binding field rank=1 i32 "out"
    binding scalar i32 "rounds"
    body {
      %z = constant<0> : i32
      %one = constant<1> : i32
      %n = extent<0.0> : i32
      %r = param<4> : i32
      parallel %z, %n {(%i: i32)
        %s = load<0.0> %i : i32
        %double = add %s, %s : i32
          %a, %b = loop %z, %r, %one, %s, %one : i32, i32 {(%k: i32, %sum: i32, %last: i32)
          %at = add %i, %k : i32
          %v = load<1.0> %at : i32
          %more = mul %sum, %last : i32
          %next = add %more, %v : i32
          %row = mul %k, %n : i32
          %cell = add %row, %i : i32
          store<2.0> %cell, %next
          yield %next, %v
        }
        %c = sub %a, %b : i32
        %from = load<1.0> %double : i32
        %d = add %c, %from : i32
        store<3.0> %i, %d
        yield
      }
      yield
    })");
  size_t n = 23, rounds = GENERATE(size_t(0), size_t(1), size_t(5));
  Fields in(5);
  for (size_t k = 0; k < n; k++) in[0].push_back(k * 7 % 11);
  for (size_t k = 0; k < 30; k++) in[1].push_back(Bits(uint32_t(int32_t(k * k % 13) - 5)));
  in[2].assign(n * rounds + 1, 0);
  in[3].assign(n, 0);
  in[4] = {rounds};
  Fields expected = in;
  for (size_t i = 0; i < n; i++) {
    auto a = uint32_t(in[0][i]), b = uint32_t(1);
    for (size_t k = 0; k < rounds; k++) {
      auto v = uint32_t(in[1][i + k]);
      a = a * b + v;
      b = v;
      expected[2][k * n + i] = a;
    }
    expected[3][i] = a - b + uint32_t(in[1][2 * in[0][i]]);
  }
  for (uint32_t lanes : {0u, 1u, 4u, 64u})
    for (uint64_t grain : {1, 6, 100}) {
      auto copy = clone(*kernel);
      TargetTraits traits;
      traits.strip = lanes;
      prepare(*copy, traits);
      CHECK((count(*copy, Op::slot) > 0) == (lanes > 0));
      auto out = test::run(*copy, in, {.grain = grain});
      CHECK(out.fields == expected);
    }
}

TEST_CASE("the host computes bounds that take many operations, and so need not wait for them") {
  for (int operations : {10, 250, 400}) {
    std::string chain = "%a0 = add %n, %one : i32\n";
    for (int k = 1; k < operations; k++)
      chain += "%a" + std::to_string(k) + " = mul %a" + std::to_string(k - 1) + ", %one : i32\n";
    const std::string end = "%a" + std::to_string(operations - 1);
    // What comes before the loop that it bounds wants it too.
    auto kernel =
        over_x("store<0.0> %i, " + end, "", "",
               chain + "parallel ordinal=1 %z, %n {(%j: i32)\nstore<1.0> %j, " + end + "\nyield\n}",
               "%z, " + end);
    split_tasks(*kernel);
    INFO(operations);
    bool waits = false;
    for (const Task& task : kernel->tasks)
      if (task.domain)
        for (const Inst* inst : *task.domain) waits |= inst->is(Op::load);
    CHECK(waits == (operations > 300));
    CHECK((count(*kernel, Op::load) > 0) == (operations > 32));
  }
}

TEST_CASE("Tests verify kernels after every pass") {
  auto kernel = over_x("store<0.0> %i, %one");
  kernel->body->first->imm = ~Bits(0);  // more bits than an i32 has
  CHECK_THROWS_WITH(optimise(*kernel), contains("is not sound after add_sites") &&
                                           contains("has bits beyond its type"));
}
