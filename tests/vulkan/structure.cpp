// Control flow, slots, tasks and modes of lowered kernels, against what C++ computes.
#include <cmath>
#include <limits>
#include <random>

#include "quern/error.h"
#include "tests/catch.h"
#include "tests/vulkan/support.h"

using namespace quern;
using test::Buffer;
using test::Program;

namespace {
std::string task(const std::string& body, const std::string& header = "task serial",
                 const std::string& modes = "") {
  return "quern 1\nkernel @k level=lowered" + modes + "\n" + header + " {\n" + body +
         "\nyield\n}\n";
}
const std::string element = "task range rank=1 walk=element domain { yield }";
const std::string chunked = "task range rank=1 walk=chunked domain { yield }";

/// `body` for each iteration %i: i64.
std::string each(const std::string& before, const std::string& body) {
  return task(before + R"(
    %thread = builtin.thread : i64
    %end = builtin.end : i64
    %threads = builtin.threads : i64
    loop %thread, %end, %threads {(%i: i64)
    )" + body + "\nyield\n}",
              element);
}

uint64_t bits(float v) { return ir::bits_of(v); }
}  // namespace

TEST_CASE("saxpy") {
  Program p(each(R"(
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
  for (uint64_t n : {1, 63, 64, 65, 1000, 100003}) {
    std::vector<float> x(n), y(n);
    for (uint64_t k = 0; k < n; k++) x[k] = float(k), y[k] = float(3 * k);
    Buffer dx(x), dy(y);
    p.entry(0, bits(2.0f)).entry(1, dx).entry(2, dy).run(0, n);
    uint64_t wrong = 0;
    std::vector<float> out = dy.read<float>();
    for (uint64_t k = 0; k < n; k++) wrong += out[k] != float(5 * k);
    CHECK(wrong == 0);
  }
}

TEST_CASE("more groups than one dimension holds") {
  // x[i] += 1 over 65,535 · 64 + 1,000 bytes
  Program p(each("%x = arg<64> : address\n%one = constant<1> : u8", R"(
      %px = offset %x, %i : address
      %v = read<1> %px : u8
      %s = add %v, %one : u8
      write<1> %px, %s)"));
  uint64_t n = 65535ull * 64 + 1000;
  Buffer x(std::vector<uint8_t>(n, 6));
  p.entry(0, x).run(0, n);
  uint64_t wrong = 0;
  for (uint8_t v : x.read<uint8_t>()) wrong += v != 7;
  CHECK(wrong == 0);
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
                 chunked));
  Buffer out(std::vector<int64_t>(8, -1));
  p.entry(0, out).run(0, 10, 3);
  CHECK(out.read<int64_t>() == std::vector<int64_t>{0, 4, 4, 8, 8, 10, -1, -1});
}

TEST_CASE("while and if, in step with neighbours that end earlier: Collatz steps") {
  Program p(each("%px = arg<64> : address", R"(
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
  Buffer dx(x);
  p.entry(0, dx).run(0, x.size());
  CHECK(dx.read<uint64_t>() == want);
}

TEST_CASE("values of the round that ended a loop are each iteration's own") {
  // Follows next[] from i until a marked element; yields what was read there.
  Program p(each("%next = arg<64> : address\n%out = arg<72> : address", R"(
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
  Buffer dnext(next), out(want.size() * 4);
  p.entry(0, dnext).entry(1, out).run(0, n);
  CHECK(out.read<uint32_t>() == want);
}

TEST_CASE("loops with steps end where the index would wrap") {
  // counts rounds and sums indices
  auto text = [](const std::string& type) {
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
      %wide = convert %i : i64
      %s1 = add %s, %wide : i64
      yield %c1, %s1
    }
    %q = offset %p, %eight : address
    write<1> %p, %n
    write<1> %q, %sum)");
    for (size_t at; (at = s.find(": T")) != std::string::npos;) s.replace(at, 3, ": " + type);
    return s;
  };
  auto check = [&]<class T>(const char* type, T lo, T hi, T step) {
    int64_t rounds = 0, sum = 0;
    for (T i = lo; i < hi;) {
      rounds++;
      sum = int64_t(uint64_t(sum) + uint64_t(i));  // wraps
      T next = T(uint64_t(i) + uint64_t(step));
      if (next <= i) break;
      i = next;
    }
    Program p(text(type));
    Buffer out(16);
    p.entry(0, out).entry(1, uint64_t(lo)).entry(2, uint64_t(hi)).entry(3, uint64_t(step)).run();
    INFO(type << " " << int64_t(lo) << " " << int64_t(hi) << " " << int64_t(step));
    CHECK(out.read<int64_t>() == std::vector<int64_t>{rounds, sum});
  };
  check("i32", 0, 10, 1);
  check("i32", 5, 5, 1);
  check("i32", 6, 5, 1);
  check("i32", -7, 8, 5);
  check("i32", INT32_MAX - 5, INT32_MAX, 4);
  check("i32", INT32_MIN, INT32_MAX, INT32_MAX);
  check("u8", uint8_t(250), uint8_t(255), uint8_t(4));
  check("i8", int8_t(-128), int8_t(127), int8_t(100));
  check("u32", 0u, UINT32_MAX, 1u << 31);
  check("i64", int64_t(0), INT64_MAX, INT64_MAX / 2);
  check("u64", uint64_t(0), UINT64_MAX, UINT64_MAX / 3);
}

TEST_CASE("slots are zero where they stand, each time") {
  // out[i] = 1000 · sum of a local array of 8 of which only element i % 8 was set, plus a scalar
  Program p(each("%out = arg<64> : address", R"(
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
  Buffer out(want.size() * 8);
  p.entry(0, out).run(0, want.size());
  CHECK(out.read<int64_t>() == want);
}

TEST_CASE("functions with several results are called") {
  Program p(R"(quern 1
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
  Buffer out(16);
  p.entry(0, out).entry(1, ir::bits_of(5.0)).entry(2, ir::bits_of(3.0)).run();
  CHECK(out.read<double>() == std::vector<double>{10, 6});
}

TEST_CASE("a sum is rounded after its product where the modes forbid contraction") {
  // a·b − c is 0 when rounded twice, the product's rounding error when fused
  for (const char* modes : {" modes=strict,contract", " modes="}) {
    std::string none = modes;
    Program p(task(R"(
    %p = arg<64> : address
    %a = arg<72> : f32
    %b = arg<80> : f32
    %c = arg<88> : f32
    %m = mul %a, %b : f32
    %d = sub %m, %c : f32
    write<1> %p, %d)",
                   "task serial", none == " modes=" ? "" : none));
    float a = 1 + std::ldexp(1.0f, -12), c = a * a;
    Buffer out(4);
    p.entry(0, out).entry(1, bits(a)).entry(2, bits(a)).entry(3, bits(c)).run();
    CHECK(out.read<float>()[0] == 0);
  }
}

TEST_CASE("a loop either runs to its end or is an error that says so") {
  // Mesa's software driver cuts loops short without a word.
  for (uint64_t n : {60000, 70000, 200000}) {
    for (std::string kind : {"loop", "while"}) {
      std::string loop = R"(
    %sum = loop %zero, %n, %one, %zero : i64 {(%i: i64, %s: i64)
      %q = bit_xor %i, %s : i64
      %t = add %q, %i : i64
      yield %t
    })";
      std::string repeat = R"(
    %last, %sum = while %zero, %zero : i64, i64 {(%i: i64, %s: i64)
      %go = lt %i, %n : b1
      yield %go, %i, %s
    } {(%i2: i64, %s2: i64)
      %q = bit_xor %i2, %s2 : i64
      %t = add %q, %i2 : i64
      %next = add %i2, %one : i64
      yield %next, %t
    })";
      Program p(task(R"(
    %p = arg<64> : address
    %n = arg<72> : i64
    %zero = constant<0> : i64
    %one = constant<1> : i64)" +
                     (kind == "loop" ? loop : repeat) + "\nwrite<1> %p, %sum"));
      int64_t want = 0;
      for (int64_t i = 0; i < int64_t(n); i++) want = (i ^ want) + i;
      Buffer out(8);
      p.entry(0, out).entry(1, n);
      bool cut = false;
      try {
        p.run();
      } catch (const Error& e) {
        cut = true;
        CHECK(std::string(e.what()).find("65,535 rounds") != std::string::npos);
      }
      INFO(kind << " " << n);
      CHECK((cut || out.read<int64_t>()[0] == want));
      CHECK((!cut || n > 65535));
    }
  }
}

TEST_CASE("one iteration whose loop is cut is noticed among others that end") {
  // iteration i runs n[i] rounds
  Program p(each("%p = arg<64> : address", R"(
    %zero = constant<0> : i64
    %one = constant<1> : i64
    %eight = constant<8> : i64
    %o = mul %i, %eight : i64
    %at = offset %p, %o : address
    %n = read<1> %at : i64
    %sum = loop %zero, %n, %one, %zero : i64 {(%k: i64, %s: i64)
      %t = add %s, %one : i64
      yield %t
    }
    %m = neg %sum : i64
    write<1> %at, %m)"));
  std::vector<int64_t> n(100, 10);
  for (int64_t long_one : {60000, 100000}) {
    n[37] = long_one;
    Buffer d(n);
    p.entry(0, d);
    bool cut = false;
    try {
      p.run(0, n.size());
    } catch (const Error&) {
      cut = true;
    }
    std::vector<int64_t> out = d.read<int64_t>();
    for (size_t k = 0; k < n.size(); k++) {
      INFO(k << ": " << out[k] << " " << cut);
      CHECK((out[k] == -n[k] || (cut && k == 37)));
    }
    CHECK((!cut || long_one > 65535));
  }
}
