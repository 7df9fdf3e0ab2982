// Control flow, slots and memory of lowered kernels, against what C++ computes.
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/catch.h"
#include "tests/cpu/support.h"

using namespace quern;
using test::Program;

namespace {
__extension__ using Wide = __int128;

std::string task(const std::string& body, const std::string& header = "task serial") {
  return "quern 1\nkernel @k level=lowered\n" + header + " {\n" + body + "\nyield\n}\n";
}
const std::string range = "task range rank=1 walk=chunked domain { yield }";
}  // namespace

TEST_CASE("saxpy in chunks") {
  Program p(task(R"(
    %a = arg<64> : f32
    %x = arg<72> : address
    %y = arg<80> : address
    %lo = builtin.begin : i64
    %hi = builtin.end : i64
    %one = constant<1> : i64
    %four = constant<4> : i64
    loop %lo, %hi, %one {(%i: i64)
      %o = mul %i, %four : i64
      %px = offset %x, %o : address
      %py = offset %y, %o : address
      %vx = read<1> %px : f32
      %vy = read<2> %py : f32
      %m = mul %a, %vx : f32
      %s = add %m, %vy : f32
      write<2> %py, %s
      yield
    })",
                 range));
  for (uint64_t n : {1, 15, 16, 1000, 100003}) {
    for (uint64_t chunks : {1, 3, 8}) {
      std::vector<float> x(n), y(n);
      for (uint64_t k = 0; k < n; k++) x[k] = float(k), y[k] = float(3 * k);
      p.value(0, 2.0f).entry(1, x.data()).entry(2, y.data());
      uint64_t grain = (n + chunks - 1) / chunks;
      p.run(0, n, (n + grain - 1) / grain);
      uint64_t wrong = 0;
      for (uint64_t k = 0; k < n; k++) wrong += y[k] != float(5 * k);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("chunk, begin and end") {
  Program p(task(R"(
    %out = arg<64> : address
    %c = builtin.chunk : i64
    %b = builtin.begin : i64
    %e = builtin.end : i64
    %w = constant<16> : i64
    %eight = constant<8> : i64
    %o = mul %c, %w : i64
    %p = offset %out, %o : address
    %q = offset %p, %eight : address
    write<1> %p, %b
    write<1> %q, %e)",
                 range));
  int64_t out[6] = {};
  p.entry(0, out).run(0, 10, 3);
  CHECK(std::vector<int64_t>(out, out + 6) == std::vector<int64_t>{0, 4, 4, 8, 8, 10});
}

TEST_CASE("while and if: Collatz steps") {
  Program p(task(R"(
    %px = arg<64> : address
    %n0 = read<1> %px : u64
    %zero = constant<0> : i32
    %one = constant<1> : u64
    %two = constant<2> : u64
    %three = constant<3> : u64
    %inc = constant<1> : i32
    %n1, %steps = while %n0, %zero : u64, i32 {(%n: u64, %s: i32)
      %go = ne %n, %one : b1
      yield %go, %n, %s
    } {(%n: u64, %s: i32)
      %r = rem %n, %two : u64
      %odd = eq %r, %one : b1
      %next = if %odd : u64 {
        %t = mul %n, %three : u64
        %u = add %t, %one : u64
        yield %u
      } {
        %h = div %n, %two : u64
        yield %h
      }
      %s1 = add %s, %inc : i32
      yield %next, %s1
    }
    %wide = convert %steps : u64
    write<1> %px, %wide)"));
  for (uint64_t n : {1, 2, 7, 27, 97, 871}) {
    uint64_t x = n, steps = 0;
    for (uint64_t v = n; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) steps++;
    p.entry(0, &x).run();
    CHECK(x == steps);
  }
}

TEST_CASE("loops with steps end where the index would wrap") {
  // counts rounds and sums indices
  auto typed = [](const std::string& type) {
    std::string s = task(R"(
    %p = arg<64> : address
    %lo = arg<72> : T
    %hi = arg<80> : T
    %step = arg<88> : T
    %zero = constant<0> : i64
    %inc = constant<1> : i64
    %eight = constant<8> : i64
    %n, %sum = loop %lo, %hi, %step, %zero, %zero : i64, i64 {(%i: T, %c: i64, %s: i64)
      %c1 = add %c, %inc : i64
      %w = convert %i : i64
      %s1 = add %s, %w : i64
      yield %c1, %s1
    }
    write<1> %p, %n
    %q = offset %p, %eight : address
    write<1> %q, %sum)");
    for (size_t at; (at = s.find(": T")) != std::string::npos;) s.replace(at, 3, ": " + type);
    return s;
  };
  auto check = [&](auto kind, const std::string& type) {
    using T = decltype(kind);
    Program p(typed(type));
    constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    for (T lo : {T(0), T(1), T(5), low, T(high - 3), T(high - 1)})
      for (T hi : {T(0), T(1), T(7), T(100), high, low})
        for (T step : {T(1), T(2), T(3), T(50), high}) {
          int64_t count = 0;
          uint64_t sum = 0;
          if (double(hi) - double(lo) > 1e6) continue;
          for (Wide i = lo; i < hi; i += step) count++, sum += uint64_t(i);
          int64_t out[2] = {-1, -1};
          p.entry(0, out).value(1, lo).value(2, hi).value(3, step).run();
          INFO(type << " " << int64_t(lo) << " " << int64_t(hi) << " " << int64_t(step));
          CHECK(out[0] == count);
          CHECK(uint64_t(out[1]) == sum);
        }
  };
  check(int8_t(), "i8");
  check(uint8_t(), "u8");
  check(int32_t(), "i32");
  check(uint32_t(), "u32");
  check(int64_t(), "i64");
  check(uint64_t(), "u64");
}

TEST_CASE("slots are zero where they stand, each time") {
  // out[i] = sum of a local array of 8 in which only element i % 8 was set, then a scalar slot
  Program p(task(R"(
    %out = arg<64> : address
    %lo = builtin.begin : i64
    %hi = builtin.end : i64
    %one = constant<1> : i64
    %eight = constant<8> : i64
    %zero = constant<0> : i64
    loop %lo, %hi, %one {(%i: i64)
      %a = slot<8> : slot i64
      %flag = slot<1> : slot b1
      %k = rem %i, %eight : i64
      put %a, %k, %i
      %before = get %flag : b1
      %true = constant<1> : b1
      put %flag, %true
      %after = get %flag : b1
      %sum = loop %zero, %eight, %one, %zero : i64 {(%j: i64, %s: i64)
        %v = get %a, %j : i64
        %s1 = add %s, %v : i64
        yield %s1
      }
      %x = convert %before : i64
      %y = convert %after : i64
      %t = mul %y, %one : i64
      %u = sub %t, %x : i64
      %w = mul %sum, %u : i64
      %o = mul %i, %eight : i64
      %q = offset %out, %o : address
      write<1> %q, %w
      yield
    })",
                 range));
  std::vector<int64_t> out(100, -1);
  p.entry(0, out.data()).run(0, 100);
  for (int64_t k = 0; k < 100; k++) CHECK(out[size_t(k)] == k);
}

TEST_CASE("large local arrays work, too large ones are refused") {
  auto text = [](int count) {
    std::string s = task(R"(
    %out = arg<64> : address
    %k = arg<72> : i64
    %a = slot<COUNT> : slot i64
    %x = get %a, %k : i64
    %one = constant<1> : i64
    %y = add %x, %one : i64
    put %a, %k, %y
    %z = get %a, %k : i64
    write<1> %out, %z)");
    return s.replace(s.find("COUNT"), 5, std::to_string(count));
  };
  int64_t out = 0;
  Program(text(100000)).entry(0, &out).value(1, int64_t(99999)).run();
  CHECK(out == 1);
  CHECK_THROWS_AS(Program(text(200000)), Error);
}

TEST_CASE("overlapping arguments of one class stay in order, different components too") {
  // x[i + 1] = x[i] + 1 in a loop that is not a parallel walk
  Program p(task(R"(
    %x = arg<64> : address
    %lo = constant<0> : i64
    %hi = builtin.end : i64
    %one = constant<1> : i64
    %inc = constant<1> : i32
    %four = constant<4> : i64
    loop %lo, %hi, %one {(%i: i64)
      %o = mul %i, %four : i64
      %a = offset %x, %o : address
      %b = offset %a, %four : address
      %v = read<1> %a : i32
      %s = add %v, %inc : i32
      write<1> %b, %s
      yield
    })"));
  std::vector<int32_t> x(1001);
  p.entry(0, x.data()).run(0, 1000);
  for (int32_t k = 0; k <= 1000; k++) CHECK(x[size_t(k)] == k);
}

TEST_CASE("class 0 may overlap any field") {
  Program p(task(R"(
    %x = arg<64> : address
    %y = arg<72> : address
    %seven = constant<7> : i32
    %zero = constant<0> : i32
    write<1> %x, %zero
    write<0> %y, %seven
    %v = read<1> %x : i32
    %four = constant<4> : i64
    %q = offset %x, %four : address
    write<1> %q, %v)"));
  int32_t x[2] = {1, 2};
  p.entry(0, x).entry(1, x).run();
  CHECK(x[0] == 7);
  CHECK(x[1] == 7);
}

TEST_CASE("functions with several results are called") {
  Program p(R"(quern 1
  kernel @k level=lowered
  function @task_0(%a: f64, %b: f64) -> (f64, f64) {
    %s = add %a, %b : f64
    %d = sub %a, %b : f64
    yield %s, %d
  }
  task serial {
    %p = arg<64> : address
    %eight = constant<8> : i64
    %q = offset %p, %eight : address
    %a = read<1> %p : f64
    %b = read<1> %q : f64
    %s, %d = call<0> %a, %b : f64, f64
    write<1> %p, %s
    write<1> %q, %d
    yield
  })");
  double x[2] = {5, 3};
  p.entry(0, x).run();
  CHECK(x[0] == 8);
  CHECK(x[1] == 2);
}

TEST_CASE("contraction only where the modes allow it") {
  // a*b - c is 0 when rounded twice, the product's rounding error when fused
  auto text = [](const std::string& modes) {
    return "quern 1\nkernel @k level=lowered" + modes + R"(
  task serial {
    %p = arg<64> : address
    %a = arg<72> : f64
    %b = arg<80> : f64
    %c = arg<88> : f64
    %m = mul %a, %b : f64
    %s = sub %m, %c : f64
    write<1> %p, %s
    yield
  })";
  };
  double a = 1 + 0x1p-30, b = 1 + 0x1p-31, out = -1;
  volatile double product = a * b;
  auto run = [&](const std::string& source) {
    Program(source).entry(0, &out).value(1, a).value(2, b).value(3, double(product)).run();
    return out;
  };
  for (std::string modes : {" modes=strict,contract", " modes=strict", ""}) {
    INFO(modes);
    CHECK(run(text(modes)) == 0);
  }
  if (test::driver().target().isa.find("+fma") != std::string::npos)
    CHECK(run(text(" modes=contract")) == std::fma(a, b, -double(product)));
  std::string kept = text(" modes=contract");
  kept.replace(kept.find("= mul"), 5, "= mul.uncontracted");
  CHECK(run(kept) == 0);
}

TEST_CASE("running minimum and maximum skip NaN and order the zeros, in nested loops too") {
  // out = least, greatest, and the least clamped from below by fmax(least, 0)
  Program p(task(R"(
    %x = arg<64> : address
    %out = arg<72> : address
    %rows = arg<80> : i64
    %n = arg<88> : i64
    %first = arg<96> : f32
    %zero = constant<0> : i64
    %one = constant<1> : i64
    %four = constant<4> : i64
    %least, %most = loop %zero, %rows, %one, %first, %first : f32, f32 {(%r: i64, %a: f32, %b: f32)
      %s = mul %r, %n : i64
      %e = add %s, %n : i64
      %a2, %b2 = loop %s, %e, %one, %a, %b : f32, f32 {(%i: i64, %c: f32, %d: f32)
        %o = mul %i, %four : i64
        %q = offset %x, %o : address
        %v = read<1> %q : f32
        %c1 = fmin %v, %c : f32
        %d1 = fmax %d, %v : f32
        yield %c1, %d1
      }
      yield %a2, %b2
    }
    %null = constant<0> : f32
    %clamped = fmax %least, %null : f32
    write<2> %out, %least
    %out1 = offset %out, %four : address
    write<2> %out1, %most
    %out2 = offset %out1, %four : address
    write<2> %out2, %clamped)"));
  auto below = [](float a, float b) {
    return a < b || (a == b && std::signbit(a) && !std::signbit(b));
  };
  std::vector<std::vector<float>> cases = {
      {NAN, NAN, NAN, NAN},   {0.0f, -0.0f, NAN, 0.0f},       {-0.0f, 0.0f, 0.0f, -0.0f},
      {3, NAN, -INFINITY, 7}, {INFINITY, NAN, INFINITY, NAN}, {NAN, 1e-40f, -1e-40f, NAN}};
  std::vector<float> long_case;
  for (int k = 0; k < 400; k++) long_case.push_back(k % 7 ? float((k * 37) % 101) - 50 : NAN);
  cases.push_back(long_case);
  for (auto& values : cases)
    for (float first : {float(NAN), 1.0f, -2.0f}) {
      float least = first, most = first, out[3] = {};
      for (float v : values) {
        if (std::isnan(v)) continue;
        if (std::isnan(least) || below(v, least)) least = v;
        if (std::isnan(most) || below(most, v)) most = v;
      }
      p.entry(0, values.data()).entry(1, out);
      p.value(2, int64_t(4)).value(3, int64_t(values.size() / 4)).value(4, first).run();
      auto same = [](float a, float b) {
        return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
      };
      CHECK(same(out[0], least));
      CHECK(same(out[1], most));
      CHECK(same(out[2], std::isnan(least) || below(least, 0.0f) ? 0.0f : least));
    }
}
