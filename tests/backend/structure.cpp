// Control flow, slots, memory and modes of lowered kernels, against what C++ computes.
#include <cmath>
#include <limits>
#include <random>

#include "quern/error.h"
#include "tests/backend/harness/harness.h"

using namespace quern;
using test::Buffer;
using test::chunked;
using test::each;
using test::OnEachLowering;
using test::Program;
using test::serial;

namespace {
__extension__ using Wide = __int128;
}

TEST_CASE_METHOD(OnEachLowering, "saxpy") {
  Program p(driver, each(driver, R"(
      %a = arg<64> : f32
      %x = arg<72> : address
      %y = arg<80> : address
      %four = constant<4> : i64)",
                         R"(
      %o = mul %i, %four : i64
      %px = offset %x, %o : address
      %py = offset %y, %o : address
      %vx = read<1> %px : f32
      %vy = read<2> %py : f32
      %m = mul %a, %vx : f32
      %s = add %m, %vy : f32
      write<2> %py, %s)"));
  for (uint64_t n : {1, 15, 63, 64, 65, 1000, 100003}) {
    std::vector<float> x(n), y(n);
    for (uint64_t k = 0; k < n; k++) x[k] = float(k), y[k] = float(3 * k);
    for (uint64_t chunks : {1, 3, 8}) {
      Buffer dx(driver, x), dy(driver, y);
      p.entry(0, 2.0f).entry(1, dx).entry(2, dy).run(0, n, chunks);
      uint64_t wrong = 0;
      std::vector<float> out = dy.read<float>();
      for (uint64_t k = 0; k < n; k++) wrong += out[k] != float(5 * k);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE_METHOD(OnEachLowering, "more iterations than one dimension of a grid holds") {
  // x[i] += 1 over 65,535 · 64 + 1,000 bytes
  Program p(driver, each(driver, "%x = arg<64> : address\n%one = constant<1> : u8", R"(
      %px = offset %x, %i : address
      %v = read<1> %px : u8
      %s = add %v, %one : u8
      write<1> %px, %s)"));
  uint64_t n = 65535ull * 64 + 1000;
  Buffer x(driver, std::vector<uint8_t>(n, 6));
  p.entry(0, x).run(0, n);
  uint64_t wrong = 0;
  for (uint8_t v : x.read<uint8_t>()) wrong += v != 7;
  CHECK(wrong == 0);
}

TEST_CASE_METHOD(OnEachLowering, "chunk, begin and end") {
  Program p(driver, chunked(R"(
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
    write<1> %q, %e)"));
  Buffer out(driver, std::vector<int64_t>(8, -1));
  p.entry(0, out).run(0, 10, 3);
  CHECK(out.read<int64_t>() == std::vector<int64_t>{0, 4, 4, 8, 8, 10, -1, -1});
}

TEST_CASE_METHOD(OnEachLowering,
                 "while and if, in step with neighbours that end earlier: Collatz steps") {
  Program p(driver, each(driver, "%px = arg<64> : address", R"(
    %zero = constant<0> : i32
    %eight = constant<8> : i64
    %o = mul %i, %eight : i64
    %at = offset %px, %o : address
    %n0 = read<1> %at : u64
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
    write<1> %at, %wide)"));
  std::vector<uint64_t> x(1000), want;
  for (size_t k = 0; k < x.size(); k++) {
    x[k] = k + 1;
    uint64_t steps = 0;
    for (uint64_t v = x[k]; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) steps++;
    want.push_back(steps);
  }
  Buffer dx(driver, x);
  p.entry(0, dx).run(0, x.size());
  CHECK(dx.read<uint64_t>() == want);
}

TEST_CASE_METHOD(OnEachLowering, "values of the round that ended a loop are each iteration's own") {
  // Follows next[] from i until a marked element; yields what was read there.
  Program p(driver, each(driver, "%next = arg<64> : address\n%out = arg<72> : address", R"(
    %four = constant<4> : i64
    %limit = constant<1000000> : u32
    %start = convert %i : u32
    %zero = constant<0> : u32
    %last, %seen = while %start, %zero : u32, u32 {(%at: u32, %s: u32)
      %wide = convert %at : i64
      %o = mul %wide, %four : i64
      %p = offset %next, %o : address
      %v = read<1> %p : u32
      %go = lt %v, %limit : b1
      yield %go, %at, %v
    } {(%at: u32, %v: u32)
      yield %v, %v
    }
    %eight = constant<8> : i64
    %w = mul %i, %eight : i64
    %po = offset %out, %w : address
    %po4 = offset %po, %four : address
    write<2> %po, %last
    write<2> %po4, %seen)"));
  std::mt19937 random(3);
  size_t n = 777;
  std::vector<uint32_t> next(n), want;
  for (size_t k = 0; k < n; k++)
    next[k] = k % 50 == 0 ? uint32_t(1000000 + k) : uint32_t(random() % k);
  for (size_t k = 0; k < n; k++) {
    uint32_t at = uint32_t(k);
    while (next[at] < 1000000) at = next[at];
    want.insert(want.end(), {at, next[at]});
  }
  Buffer dnext(driver, next), out(driver, want.size() * 4);
  p.entry(0, dnext).entry(1, out).run(0, n);
  CHECK(out.read<uint32_t>() == want);
}

TEST_CASE_METHOD(OnEachLowering, "loops with steps end where the index would wrap") {
  // counts rounds and sums indices
  auto typed = [](const std::string& type) {
    std::string s = serial(R"(
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
    Program p(driver, typed(type));
    Buffer out(driver, 16);
    constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    for (T lo : {T(0), T(1), T(5), low, T(high - 3), T(high - 1)})
      for (T hi : {T(0), T(1), T(7), T(100), high, low})
        for (T step : {T(1), T(2), T(3), T(50), high}) {
          uint64_t count = 0, sum = 0;
          if ((double(hi) - double(lo)) / double(step) > 60'000) continue;
          for (Wide i = lo; i < hi; i += step) count++, sum += uint64_t(i);
          p.entry(0, out).entry(1, lo).entry(2, hi).entry(3, step).run();
          INFO(type << " " << int64_t(lo) << " " << int64_t(hi) << " " << int64_t(step));
          CHECK(out.read<uint64_t>() == std::vector<uint64_t>{count, sum});
        }
  };
  check(int8_t(), "i8");
  check(uint8_t(), "u8");
  check(int32_t(), "i32");
  check(uint32_t(), "u32");
  check(int64_t(), "i64");
  check(uint64_t(), "u64");
}

TEST_CASE_METHOD(OnEachLowering, "slots are zero where they stand, each time") {
  // out[i] = 1000 · sum of a local array of 8 of which only element i % 8 was set, plus a scalar
  Program p(driver, each(driver, "%out = arg<64> : address", R"(
    %zero = constant<0> : i64
    %one = constant<1> : i64
    %two = constant<2> : i64
    %eight = constant<8> : i64
    %thousand = constant<1000> : i64
    %total = loop %zero, %two, %one, %zero : i64 {(%round: i64, %t: i64)
      %a = slot<8> : slot i64
      %s = slot<1> : slot i64
      %f = slot<1> : slot b1
      %k = rem %i, %eight : i64
      put %a, %k, %i
      %sum = loop %zero, %eight, %one, %zero : i64 {(%j: i64, %u: i64)
        %v = get %a, %j : i64
        %u1 = add %u, %v : i64
        yield %u1
      }
      %was = get %f : b1
      %go = lt %k, %two : b1
      put %f, %go
      %now = get %f : b1
      %n0 = convert %was : i64
      %n1 = convert %now : i64
      %old = get %s : i64
      put %s, %i
      %part = mul %sum, %thousand : i64
      %x1 = add %part, %n0 : i64
      %x2 = add %x1, %n1 : i64
      %x3 = add %x2, %old : i64
      %t1 = add %t, %x3 : i64
      yield %t1
    }
    %o = mul %i, %eight : i64
    %p = offset %out, %o : address
    write<1> %p, %total)"));
  std::vector<int64_t> want;
  for (int64_t k = 0; k < 100; k++) want.push_back(2 * (1000 * k + (k % 8 < 2)));
  Buffer out(driver, want.size() * 8);
  p.entry(0, out).run(0, want.size());
  CHECK(out.read<int64_t>() == want);
}

TEST_CASE_METHOD(OnEachLowering,
                 "overlapping arguments of one class stay in order, different components too") {
  // x[i + 1] = x[i] + 1 in a loop that is not a parallel walk
  Program p(driver, serial(R"(
    %x = arg<64> : address
    %lo = constant<0> : i64
    %hi = constant<1000> : i64
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
  Buffer memory(driver, std::vector<int32_t>(1001));
  p.entry(0, memory).run();
  std::vector<int32_t> x = memory.read<int32_t>();
  for (int32_t k = 0; k <= 1000; k++) CHECK(x[size_t(k)] == k);
}

TEST_CASE_METHOD(OnEachLowering, "class 0 may overlap any field") {
  Program p(driver, serial(R"(
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
  Buffer x(driver, std::vector<int32_t>{1, 2});
  p.entry(0, x).entry(1, x).run();
  CHECK(x.read<int32_t>() == std::vector<int32_t>{7, 7});
}

TEST_CASE_METHOD(OnEachLowering, "functions with several results are called") {
  Program p(driver, R"(quern 1
  kernel @k level=lowered
  function @both(%a: f64, %b: f64) -> (f64, f64) {
    %s = add %a, %b : f64
    %d = sub %a, %b : f64
    yield %s, %d
  }
  task serial {
    %p = arg<64> : address
    %a = arg<72> : f64
    %b = arg<80> : f64
    %s, %d = call<0> %a, %b : f64, f64
    %s2, %d2 = call<0> %s, %d : f64, f64
    %eight = constant<8> : i64
    %q = offset %p, %eight : address
    write<1> %p, %s2
    write<1> %q, %d2
    yield
  })");
  Buffer out(driver, 16);
  p.entry(0, out).entry(1, 5.0).entry(2, 3.0).run();
  CHECK(out.read<double>() == std::vector<double>{10, 6});
}

TEST_CASE_METHOD(OnEachLowering, "contraction only where the modes allow it") {
  // a·b − c is 0 when rounded twice, the product's rounding error when fused
  auto check = [&](auto a, auto b, const std::string& type) {
    using T = decltype(a);
    volatile T product = a * b;
    auto run = [&](const std::string& modes, const std::string& kind) {
      Program p(driver, serial("%p = arg<64> : address\n%a = arg<72> : " + type +
                                   "\n%b = arg<80> : " + type + "\n%c = arg<88> : " + type +
                                   "\n%m = mul" + kind + " %a, %b : " + type +
                                   "\n%s = sub %m, %c : " + type + "\nwrite<1> %p, %s",
                               modes));
      Buffer out(driver, 8);
      p.entry(0, out).entry(1, a).entry(2, b).entry(3, T(product)).run();
      return out.first<T>();
    };
    for (const char* modes : {" modes=strict,contract", " modes=strict", ""}) {
      INFO(type << modes);
      CHECK(run(modes, "") == 0);
    }
    CHECK(run(" modes=contract", ".uncontracted") == 0);
    T fused = std::fma(a, b, -T(product)), allowed = run(" modes=contract", "");
    CHECK((allowed == fused || allowed == 0));
    if (driver.target().isa.find("+fma") != std::string::npos) CHECK(allowed == fused);
  };
  check(1 + 0x1p-12f, 1 + 0x1p-12f, "f32");
  check(1 + 0x1p-30, 1 + 0x1p-31, "f64");
}

TEST_CASE_METHOD(OnEachLowering,
                 "running minimum and maximum skip NaN and order the zeros, in nested loops too") {
  // out = least, greatest, and the least clamped from below by fmax(least, 0)
  Program p(driver, serial(R"(
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
      float least = first, most = first;
      for (float v : values) {
        if (std::isnan(v)) continue;
        if (std::isnan(least) || below(v, least)) least = v;
        if (std::isnan(most) || below(most, v)) most = v;
      }
      Buffer in(driver, values), results(driver, 12);
      p.entry(0, in).entry(1, results).entry(2, int64_t(4));
      p.entry(3, int64_t(values.size() / 4)).entry(4, first).run();
      std::vector<float> out = results.read<float>();
      auto same = [](float a, float b) {
        return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
      };
      CHECK(same(out[0], least));
      CHECK(same(out[1], most));
      CHECK(same(out[2], std::isnan(least) || below(least, 0.0f) ? 0.0f : least));
    }
}

TEST_CASE_METHOD(OnEachLowering,
                 "a choice between a widened float and zero keeps the sign of zero") {
  // v < 0 ? 0 : v, also where the comparison is used again
  Program p(driver, each(driver, "%in = arg<64> : address\n%out = arg<72> : address", R"(
    %eight = constant<8> : i64
    %o = mul %i, %eight : i64
    %pin = offset %in, %o : address
    %pout = offset %out, %o : address
    %v = read<1> %pin : f32
    %w = convert %v : f64
    %zero = constant<0> : f64
    %below = lt %w, %zero : b1
    %above = gt %w, %zero : b1
    %a = select %below, %zero, %w : f64
    %b = select %above, %zero, %a : f64
    %u = convert %below : u8
    %x = convert %above : u8
    %both = bit_or %u, %x : u8
    %flags = convert %both : f64
    %s = copysign %flags, %b : f64
    write<2> %pout, %s)"));
  std::vector<float> in;
  for (float v : {-0.0f, 0.0f, -3.0f, 5.0f, NAN}) in.insert(in.end(), {v, 0});
  for (int k = 0; k < 30; k++) in.insert(in.end(), {-0.0f, 0});
  size_t n = in.size() / 2;
  Buffer x(driver, in), y(driver, n * 8);
  p.entry(0, x).entry(1, y).run(0, n);
  std::vector<double> out = y.read<double>();
  for (size_t k = 0; k < n; k++) {
    if (k == 4) continue;  // the sign of a NaN is open
    float v = in[2 * k];
    CHECK(std::abs(out[k]) == (v != 0));
    CHECK(std::signbit(out[k]) == (v == 0 && std::signbit(v)));
  }
}
