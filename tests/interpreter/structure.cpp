// Control flow: loops at the edges of their types, exits of recorded kernels, functions.
#include <limits>

#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"
#include "tests/interpreter/launch.h"
#include "tests/interpreter/stages.h"

using namespace quern;
using namespace quern::ir;
using test::Launch;

namespace {

std::unique_ptr<Kernel> kernel(const std::string& text) {
  auto made = parse("quern 1\n" + text);
  expect_valid(*made, "parsing");
  return made;
}

/// Rounds of `loop lo, hi, step` in a type, and the sum of its indices' bits.
std::vector<Bits> rounds(Type type, Bits lo, Bits hi, Bits step) {
  std::string t(name(type));
  auto k = kernel("kernel @k level=structured results(u32, u64)\n binding scalar " + t +
                  " \"lo\"\n binding scalar " + t + " \"hi\"\n binding scalar " + t +
                  " \"step\"\n body {\n"
                  "%lo = param<0> : " +
                  t + "\n%hi = param<1> : " + t + "\n%step = param<2> : " + t +
                  R"(
      %z = constant<0> : u32
      %one = constant<1> : u32
      %s = constant<0> : u64
      %n, %sum = loop %lo, %hi, %step, %z, %s : u32, u64 {(%i: )" +
                  t + R"(, %c: u32, %a: u64)
        %d = add %c, %one : u32
        %w = convert %i : i64
        %u = convert %w : u64
        %b = add %a, %u : u64
        yield %d, %b
      }
      yield %n, %sum
    })");
  auto report = Launch(*k).scalar(0, lo).scalar(1, hi).scalar(2, step).run(*k);
  return report.results;
}

}  // namespace

TEST_CASE("counted loops end where the index would wrap") {
  using Results = std::vector<Bits>;
  CHECK(rounds(Type::i32, 0, 5, 2) == Results{3, 0 + 2 + 4});
  CHECK(rounds(Type::i32, 5, 5, 1) == Results{0, 0});
  CHECK(rounds(Type::i32, 6, 5, 1) == Results{0, 0});
  CHECK(rounds(Type::i8, bits_of_int(-128, Type::i8), bits_of_int(-126, Type::i8), 1) ==
        Results{2, uint64_t(-128 - 127)});
  CHECK(rounds(Type::i8, 120, 127, 5) == Results{2, 120 + 125});
  CHECK(rounds(Type::u8, 250, 255, 3) == Results{2, 250 + 253});
  CHECK(rounds(Type::u8, 254, 255, 255) == Results{1, 254});
  CHECK(rounds(Type::u32, 0x7fffffff, 0x80000001, 1) == Results{2, 0x7fffffffull + 0x80000000ull});
  CHECK(rounds(Type::i32, 0x7ffffffd, 0x7fffffff, 1) == Results{2, 0x7ffffffdull + 0x7ffffffeull});
  CHECK(rounds(Type::u64, ~0ull - 3, ~0ull, 2) == Results{2, (~0ull - 3) + (~0ull - 1)});
  CHECK(rounds(Type::i64, uint64_t(INT64_MIN), uint64_t(INT64_MIN) + 1, INT64_MAX) ==
        Results{1, uint64_t(INT64_MIN)});
}

TEST_CASE("carried values are replaced all at once") {
  auto k = kernel(R"(kernel @fibonacci level=structured results(i32, i32, i32, i32)
    binding scalar i32 "n"
    body {
      %n = param<0> : i32
      %z = constant<0> : i32
      %o = constant<1> : i32
      %a, %b = loop %z, %n, %o, %z, %o : i32, i32 {(%i: i32, %x: i32, %y: i32)
        %s = add %x, %y : i32
        yield %y, %s
      }
      %c, %d = while %z, %o : i32, i32 {(%x: i32, %y: i32)
        %go = lt %x, %n : b1
        yield %go, %y, %x
      } {(%x: i32, %y: i32)
        %s = add %x, %y : i32
        yield %x, %s
      }
      yield %a, %b, %c, %d
    })");
  for (int n = 0; n < 20; n++) {
    int a = 0, b = 1;
    for (int i = 0; i < n; i++) {
      int s = a + b;
      a = b;
      b = s;
    }
    int x = 0, y = 1;  // the condition exchanges them
    for (;;) {
      bool go = x < n;
      std::swap(x, y);
      if (!go) break;
      y = x + y;
    }
    auto report = Launch(*k).scalar(0, uint64_t(n)).run(*k);
    CHECK(report.results == std::vector<Bits>{Bits(a), Bits(b), Bits(x), Bits(y)});
  }
}

TEST_CASE("exits of recorded kernels") {
  // For each i: rows j are cut by break, elements skipped by continue, the outer loop by break 2.
  const char* text = R"(kernel @exits level=recorded results(i32)
    binding field rank=1 i32 "stop"
    binding field rank=1 i32 "count"
    body {
      %z = constant<0> : i32
      %o = constant<1> : i32
      %n = extent<0.0> : i32
      %four = constant<4> : i32
      parallel %z, %n {(%i: i32)
        %s = slot<1> : slot i32
        %stop = load<0.0> %i : i32
        %negative = lt %stop, %z : b1
        if %negative {
          continue<0>
        } {
          yield
        }
        loop %z, %four, %o {(%a: i32)
          loop %z, %four, %o {(%b: i32)
            %p = mul %a, %four : i32
            %at = add %p, %b : i32
            %all = eq %at, %stop : b1
            if %all {
              break<2>
            } {
              yield
            }
            %odd = bit_and %b, %o : i32
            %skip = eq %odd, %o : b1
            if %skip {
              continue<0>
            } {
              yield
            }
            %t = get %s : i32
            %u = add %t, %o : i32
            put %s, %u
            %row = gt %u, %at : b1
            if %row {
              continue<1>
            } {
              yield
            }
            yield
          }
          yield
        }
        %r = get %s : i32
        store<1.0> %i, %r
        yield
      }
      %first = load<1.0> %z : i32
      %some = gt %first, %z : b1
      if %some {
        return %first
      } {
        yield
      }
      return %four
    })";
  auto expected = [](int stop) {
    int s = 0;
    for (int a = 0; a < 4; a++)
      for (int b = 0; b < 4; b++) {
        int at = 4 * a + b;
        if (at == stop) return s;
        if (b & 1) continue;
        s++;
        if (s > at) break;
      }
    return s;
  };
  auto k = parse(std::string("quern 1\n") + text);
  test::each_stage(
      *k, test::walked(Task::chunked), [&](std::string_view pass, const Kernel& stage) {
        INFO("after " << pass);
        std::vector<int32_t> stop = {9, -1, 0, 1, 2, 5, 7, 8, 12, 15, 16}, count(stop.size(), -7);
        auto report = Launch(stage).field(0, stop).field(1, count).run(stage);
        for (size_t i = 0; i < stop.size(); i++)
          CHECK(count[i] == (stop[i] < 0 ? -7 : expected(stop[i])));
        CHECK(report.results.at(0) == Bits(expected(9)));
      });
}

TEST_CASE("functions return early, with several values, or zeros") {
  auto k = kernel(R"(kernel @calls level=recorded results(i32, f32)
    binding scalar i32 "n"
    function @f(%a: i32) -> (i32, f32) {
      %z = constant<0> : i32
      %h = constant<0.5> : f32
      %low = lt %a, %z : b1
      if %low {
        return %a, %h
      } {
        yield
      }
      %b = add %a, %a : i32
      %c = convert %b : f32
      return %b, %c
    }
    body {
      %n = param<0> : i32
      %x, %y = call<0> %n : i32, f32
      %p, %q = call<0> %x : i32, f32
      %s = add %y, %q : f32
      return %p, %s
    })");
  for (const Kernel* stage : {k.get()}) {
    auto run = [&](int32_t n) { return Launch(*stage).scalar(0, uint32_t(n)).run(*stage).results; };
    CHECK(run(3) == std::vector<Bits>{12, bits_of(6.0f + 12.0f)});
    CHECK(run(-3) == std::vector<Bits>{uint32_t(-3), bits_of(1.0f)});
  }
}

TEST_CASE("slots are zero each time they are reached; arrays keep to their size") {
  auto k = kernel(R"(kernel @slots level=structured results(i32, i32)
    body {
      %z = constant<0> : i32
      %o = constant<1> : i32
      %three = constant<3> : i32
      %far = constant<-1> : i64
      %end = constant<4> : i64
      %sum = loop %z, %three, %o, %z : i32 {(%i: i32, %acc: i32)
        %s = slot<4> : slot i32
        %old = get %s, %i : i32
        put %s, %i, %three
        put %s, %far, %three
        put %s, %end, %three
        %out = get %s, %end : i32
        %new = get %s, %i : i32
        %a = add %acc, %old : i32
        %b = add %a, %out : i32
        %c = add %b, %new : i32
        yield %c
      }
      yield %sum, %z
    })");
  interpreter::Options options;
  options.check_bounds = true;
  auto report = Launch(*k).run(*k, options);
  CHECK(report.results.at(0) == 9);
  REQUIRE(report.findings.size() == 9);
  CHECK(report.findings[0].message == "index -1 is out of range of an array of 4 elements");
}

TEST_CASE("an element that begins as anything is put before it is read") {
  auto read = [](const std::string& at) {
    auto k = kernel(R"(kernel @unset level=lowered
      binding field rank=1 i32 "x" class=1
      task serial {
        %x = arg<64> : address
        %zero = constant<0> : i64
        %one = constant<1> : i64
        %two = constant<2> : i64
        %v = constant<7> : i32
        loop %zero, %two, %one {(%i: i64)
          %s = slot.unset<4> : slot i32
          put %s, %i, %v
          %g = get %s, )" +
                    at + R"( : i32
          write<1> %x, %g
          yield
        }
        yield
      }
      schedule { launch 0 })");
    std::vector<int32_t> x(1);
    Launch(*k).field(0, x).run(*k);
    return x[0];
  };
  const std::string error = "an element of a slot is read that was never put";
  CHECK(read("%i") == 7);
  CHECK_THROWS_WITH(read("%two"), contains(error));
  CHECK_THROWS_WITH(read("%zero"), contains(error));  // of what the first round put nothing is left
}

TEST_CASE("rounds of a walk have elements of their own where an array is theirs by round") {
  auto touch = [](const std::string& at, const std::string& again) {
    auto k = kernel(R"(kernel @by_round level=lowered
      task serial {
        %zero = constant<0> : i64
        %one = constant<1> : i64
        %two = constant<2> : i64
        %v = constant<7> : i32
        %s = slot.by_round<4> : slot i32
        loop.parallel_walk %zero, %two, %one {(%i: i64)
          put %s, )" +
                    at + R"(, %v
          %g = get %s, %i : i32
          yield
        }
        loop.parallel_walk %zero, %two, %one {(%i: i64)
          %next = add %i, %one : i64
          %g = get %s, )" +
                    again + R"( : i32
          put %s, )" +
                    again + R"(, %g
          yield
        }
        yield
      }
      schedule { launch 0 })");
    Launch(*k).run(*k);
  };
  const std::string error = "two rounds of a walk access an element of a slot that is by_round";
  CHECK_NOTHROW(touch("%i", "%i"));
  CHECK_NOTHROW(touch("%i", "%next"));  // another walk may share them out otherwise
  CHECK_THROWS_WITH(touch("%one", "%i"), contains(error));
  CHECK_THROWS_WITH(touch("%i", "%one"), contains(error));
}

TEST_CASE("a run that takes too long is given up") {
  auto k = kernel(R"(kernel @forever level=structured
    body {
      while {
        %yes = constant<1> : b1
        yield %yes
      } {
        yield
      }
      yield
    })");
  interpreter::Options options;
  options.max_steps = 1000;
  CHECK_FALSE(Launch(*k).run(*k, options).ended);
}
