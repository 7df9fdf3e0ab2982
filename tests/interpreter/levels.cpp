// Kernels give what C++ computes, at every stage of the pipeline.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "quern/ir/text.h"
#include "tests/catch.h"
#include "tests/interpreter/launch.h"
#include "tests/interpreter/stages.h"

using namespace quern;
using namespace quern::ir;
using test::Launch;

namespace {

/// Runs `check` on the kernel's every stage, for chunked and element walks.
template <class F>
void at_each_stage(const std::string& text, F&& check) {
  auto kernel = parse("quern 1\n" + text);
  for (Task::Walk walk : {Task::chunked, Task::element})
    test::each_stage(*kernel, test::walked(walk), [&](std::string_view pass, const Kernel& k) {
      INFO("after " << pass);
      check(k);
    });
}

}  // namespace

TEST_CASE("saxpy at every stage") {
  const char* text = R"(kernel @saxpy level=structured
    binding scalar f32 "a"
    binding field rank=1 f32 "x"
    binding field rank=1 f32 "y"
    body {
      %a = param<0> : f32
      %z = constant<0> : i32
      %n = extent<2.0> : i32
      parallel %z, %n {(%i: i32)
        %x = load<1.0> %i : f32
        %y = load<2.0> %i : f32
        %m = mul %a, %x : f32
        %s = add %m, %y : f32
        store<2.0> %i, %s
        yield
      }
      yield
    })";
  at_each_stage(text, [](const Kernel& k) {
    for (int n : {0, 1, 6, 7, 8, 50}) {
      std::vector<float> x(n), y(n);
      for (int i = 0; i < n; i++) x[i] = float(i), y[i] = float(3 * i);
      Launch(k).scalar(0, bits_of(2.0f)).field(1, x, {n}).field(2, y, {n}).run(k);
      for (int i = 0; i < n; i++) CHECK(y[i] == float(5 * i));
    }
  });
}

TEST_CASE("three axes with bounds of their own, indices of both widths") {
  const char* text = R"(kernel @box level=structured
    binding field rank=3 i64 "v"
    body {
      %one = constant<1> : i64
      %two = constant<2> : i64
      %ni = extent<0.0> : i64
      %nj = extent<0.1> : i64
      %nk = extent<0.2> : i64
      %hi = sub %nj, %one : i64
      parallel %one, %ni, %one, %hi, %two, %nk {(%i: i64, %j: i64, %k: i64)
        %h = constant<100> : i64
        %t = constant<10> : i64
        %a = mul %i, %h : i64
        %b = mul %j, %t : i64
        %c = add %a, %b : i64
        %d = add %c, %k : i64
        store<0.0> %i, %j, %k, %d
        yield
      }
      yield
    })";
  at_each_stage(text, [](const Kernel& k) {
    std::vector<int64_t> v(4 * 5 * 6);
    Launch(k).field(0, v, {4, 5, 6}).run(k);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 5; j++)
        for (int l = 0; l < 6; l++) {
          bool inside = i >= 1 && j >= 1 && j < 4 && l >= 2;
          CHECK(v[(i * 5 + j) * 6 + l] == (inside ? 100 * i + 10 * j + l : 0));
        }
  });
}

TEST_CASE("values and variables cross tasks through the frame; results come back") {
  const char* text = R"(kernel @sum level=structured results(i32, i64, b1)
    binding field rank=1 i32 "v"
    body {
      %z = constant<0> : i32
      %n = extent<0.0> : i32
      %first = load<0.0> %z : i32
      %s = slot<1> : slot i64
      %m = slot<1> : slot i32
      %start = constant<1000> : i64
      put %s, %start
      parallel %z, %n {(%i: i32)
        %v = load<0.0> %i : i32
        %w = convert %v : i64
        reduce.add %s, %w
        reduce.max %m, %v
        %next = add %v, %first : i32
        store<0.0> %i, %next
        yield
      }
      %total = get %s : i64
      %most = get %m : i32
      %flag = lt %most, %n : b1
      parallel %z, %n {(%i: i32)
        %v = load<0.0> %i : i32
        %w = add %v, %most : i32
        store<0.0> %i, %w
        yield
      }
      yield %first, %total, %flag
    })";
  at_each_stage(text, [](const Kernel& k) {
    std::vector<int32_t> v(2500);
    std::iota(v.begin(), v.end(), 5);
    auto report = Launch(k).field(0, v).run(k);
    CHECK(report.results.at(0) == 5);
    CHECK(report.results.at(1) == 1000 + 2500 * 5 + 2500 * 2499 / 2);
    CHECK(report.results.at(2) == 0);
    for (int i = 0; i < 2500; i++) CHECK(v[i] == i + 5 + 5 + 2504);
  });
}

TEST_CASE("kernel-level loops, branches and while repeat tasks") {
  const char* text = R"(kernel @repeat level=structured results(i32)
    binding scalar i32 "rounds"
    binding field rank=1 i32 "v"
    body {
      %z = constant<0> : i32
      %one = constant<1> : i32
      %three = constant<3> : i32
      %n = extent<1.0> : i32
      %rounds = param<0> : i32
      %sum = loop %z, %rounds, %one, %z : i32 {(%r: i32, %acc: i32)
        parallel %z, %n {(%i: i32)
          %v = load<1.0> %i : i32
          %w = add %v, %r : i32
          store<1.0> %i, %w
          yield
        }
        %last = load<1.0> %z : i32
        %next = add %acc, %last : i32
        yield %next
      }
      %big = gt %sum, %three : b1
      if %big {
        parallel %z, %n {(%i: i32)
          %v = load<1.0> %i : i32
          %w = mul %v, %three : i32
          store<1.0> %i, %w
          yield
        }
        yield
      } {
        store<1.0> %z, %sum
        yield
      }
      %left = while %sum : i32 {(%c: i32)
        %go = gt %c, %z : b1
        yield %go, %c
      } {(%d: i32)
        parallel %z, %n {(%i: i32)
          %v = load<1.0> %i : i32
          %w = add %v, %one : i32
          store<1.0> %i, %w
          yield
        }
        %e = sub %d, %three : i32
        yield %e
      }
      yield %left
    })";
  at_each_stage(text, [](const Kernel& k) {
    for (int rounds : {0, 1, 2, 3, 6}) {
      std::vector<int32_t> v(9), expected(9);
      auto report = Launch(k).scalar(0, uint64_t(rounds)).field(1, v).run(k);
      int sum = 0;
      for (int r = 0; r < rounds; r++) {
        for (int& e : expected) e += r;
        sum += expected[0];
      }
      if (sum > 3)
        for (int& e : expected) e *= 3;
      else
        expected[0] = sum;
      for (; sum > 0; sum -= 3)
        for (int& e : expected) e++;
      CHECK(v == expected);
      CHECK(int32_t(report.results.at(0)) == sum);
    }
  });
}

TEST_CASE("sums of floats have the order of the law") {
  const char* text = R"(kernel @sum level=structured modes=strict results(f32)
    binding field rank=1 f32 "v"
    body {
      %z = constant<0> : i32
      %n = extent<0.0> : i32
      %s = slot<1> : slot f32
      %start = constant<0.5> : f32
      put %s, %start
      parallel %z, %n {(%i: i32)
        %v = load<0.0> %i : f32
        reduce.add %s, %v
        yield
      }
      %r = get %s : f32
      yield %r
    })";
  // Section 5 of the semantics, for plain floats.
  auto level = [](const std::vector<float>& in) {
    std::vector<float> out;
    for (size_t first = 0; first < in.size(); first += 1024) {
      float p[32];
      std::fill(p, p + 32, -0.0f);
      for (size_t k = first; k < std::min(first + 1024, in.size()); k++)
        p[(k - first) % 32] += in[k];
      for (int half = 16; half > 0; half /= 2)
        for (int j = 0; j < half; j++) p[j] += p[j + half];
      out.push_back(p[0]);
    }
    return out;
  };
  at_each_stage(text, [&](const Kernel& k) {
    for (int n : {0, 1, 33, 1024, 1025, 5000}) {
      std::vector<float> v(n);
      for (int i = 0; i < n; i++) v[i] = std::sin(float(i) * 1.7f) * float(1 + i % 97);
      auto report = Launch(k).field(0, v, {n}).run(k);
      std::vector<float> sums = level(v);
      while (sums.size() > 1) sums = level(sums);
      float expected = n ? 0.5f + sums[0] : 0.5f;
      CHECK(f32_of(report.results.at(0)) == expected);
    }
  });
}

TEST_CASE("the same fields under any order of iterations") {
  auto kernel = parse(R"(quern 1
    kernel @order level=structured
    binding field rank=2 u16 "v"
    body {
      %z = constant<0> : i32
      %n = extent<0.0> : i32
      %m = extent<0.1> : i32
      parallel %z, %n, %z, %m {(%i: i32, %j: i32)
        %a = mul %i, %m : i32
        %b = add %a, %j : i32
        %c = convert %b : u16
        store<0.0> %i, %j, %c
        yield
      }
      yield
    })");
  for (uint64_t seed = 0; seed < 20; seed++) {
    std::vector<uint16_t> v(7 * 11), expected(7 * 11);
    std::iota(expected.begin(), expected.end(), uint16_t(0));
    Launch(*kernel).field(0, v, {7, 11}).run(*kernel, {.seed = seed});
    CHECK(v == expected);
  }
}
