// Atomics that collide, and what the rounding probe found.
#include <algorithm>
#include <cmath>
#include <random>

#include "backends/vulkan/rounding.h"
#include "quern/error.h"
#include "tests/catch.h"
#include "tests/vulkan/support.h"

using namespace quern;
using namespace quern::ir;
using test::Buffer;
using test::Program;

namespace {

constexpr size_t count = 1000;

/// Iteration i does rmw.`op` with operand in[i] on the one location at entry 0; old values go to
/// entry 2. All of type `t`.
std::string collide(const std::string& op, Type t) {
  std::string type(name(t));
  return R"(quern 1
kernel @k level=lowered
task range rank=1 walk=element domain { yield } {
  %at = arg<64> : address
  %in = arg<72> : address
  %out = arg<80> : address
  %i = builtin.thread : i64
  %n = builtin.end : i64
  %inside = lt %i, %n : b1
  if %inside {
    %size = constant<)" +
         std::to_string(byte_size(t)) + R"(> : i64
    %o = mul %i, %size : i64
    %pin = offset %in, %o : address
    %pout = offset %out, %o : address
    %v = read<2> %pin : )" +
         type + R"(
    %old = rmw.)" +
         op + "<1> %at, %v : " + type + R"(
    write<3> %pout, %old
    yield
  } { yield }
  yield
}
)";
}

template <class T>
struct Run {
  T last;
  std::vector<T> old;
};

template <class T>
Run<T> collide(const std::string& op, Type t, T first, const std::vector<T>& in) {
  Program p(collide(op, t));
  Buffer at(std::vector<T>{first}), values(in), out(in.size() * sizeof(T));
  p.entry(0, at).entry(1, values).entry(2, out).run(0, in.size());
  return {at.template read<T>()[0], out.template read<T>()};
}

/// Each old value with its operand gives the next old value in some order: every one is the result
/// of exactly one other, but for the first and the last.
template <class T, class F>
void expect_chain(const Run<T>& run, T first, const std::vector<T>& in, F&& step) {
  std::vector<T> before = run.old, after = {first};
  before.push_back(run.last);
  for (size_t k = 0; k < in.size(); k++) after.push_back(step(run.old[k], in[k]));
  std::ranges::sort(before);
  std::ranges::sort(after);
  CHECK(before == after);
}

template <class T>
void integers(Type t) {
  INFO(name(t));
  std::mt19937_64 random(9);
  std::vector<T> in(count);
  for (T& v : in) v = T(random());
  T first = T(random());
  auto check = [&](const char* op, auto step) {
    INFO(op);
    T want = first;
    for (T v : in) want = step(want, v);
    Run<T> run = collide(op, t, first, in);
    if (std::string(op) != "exchange") CHECK(run.last == want);
    expect_chain(run, first, in, step);
  };
  using U = std::make_unsigned_t<T>;
  check("add", [](T a, T b) { return T(U(a) + U(b)); });
  check("min", [](T a, T b) { return std::min(a, b); });
  check("max", [](T a, T b) { return std::max(a, b); });
  check("bit_and", [](T a, T b) { return T(a & b); });
  check("bit_or", [](T a, T b) { return T(a | b); });
  check("bit_xor", [](T a, T b) { return T(a ^ b); });
  check("exchange", [](T, T b) { return b; });
}

}  // namespace

TEST_CASE("integer atomics of colliding iterations") {
  integers<int32_t>(Type::i32);
  integers<uint32_t>(Type::u32);
  integers<int64_t>(Type::i64);
  integers<uint64_t>(Type::u64);
}

TEST_CASE("float sums of colliding iterations") {
  std::vector<float> in(count);
  for (size_t k = 0; k < count; k++) in[k] = float(k % 17);
  if (!test::driver().target().traits.float_atomic_add[0]) return;  // then lowering replaces it
  float want = 0.5f;
  for (float v : in) want += v;  // exact in any order
  Run<float> run = collide("add", Type::f32, 0.5f, in);
  CHECK(run.last == want);
  expect_chain(run, 0.5f, in, [](float a, float b) { return a + b; });
}

TEST_CASE("compare and swap, and atomic loads") {
  Program p(R"(quern 1
kernel @k level=lowered
task range rank=1 walk=element domain { yield } {
  %at = arg<64> : address
  %out = arg<72> : address
  %i = builtin.thread : i64
  %n = builtin.end : i64
  %zero = constant<0> : u32
  %one = constant<1> : u32
  %inside = lt %i, %n : b1
  if %inside {
    %four = constant<4> : i64
    %o = mul %i, %four : i64
    %po = offset %out, %o : address
    %narrow = convert %i : u32
    %mine = add %narrow, %one : u32
    %old = rmw.cas<1> %at, %zero, %mine : u32
    %now = rmw.load<1> %at : u32
    %won = eq %old, %zero : b1
    %winner = select %won, %mine, %old : u32
    %same = eq %winner, %now : b1
    %r = select %same, %now, %zero : u32
    write<2> %po, %r
    yield
  } { yield }
  yield
}
)");
  Buffer at(std::vector<uint32_t>{0}), out(count * 4);
  p.entry(0, at).entry(1, out).run(0, count);
  uint32_t winner = at.read<uint32_t>()[0];
  CHECK(winner >= 1);
  CHECK(winner <= count);
  CHECK(out.read<uint32_t>() == std::vector<uint32_t>(count, winner));
}

TEST_CASE("the rounding probe says of fma what fma does") {
  // a·b − round(a·b): 0 where the product was rounded first
  for (Type t : {Type::f32, Type::f64}) {
    std::string type(name(t));
    Program p(
        "quern 1\nkernel @k level=lowered modes=strict,contract\ntask serial {\n%p = arg<64> : "
        "address\n%a = arg<72> : " +
        type + "\n%c = arg<80> : " + type + "\n%f = fma %a, %a, %c : " + type +
        "\nwrite<1> %p, %f\nyield\n}\n");
    int bits = t == Type::f32 ? 12 : 27;
    double a = 1 + std::ldexp(1.0, -bits);
    Buffer out(8);
    double product = t == Type::f32 ? double(float(a) * float(a)) : a * a;
    p.entry(0, out).entry(1, bits_of_real(a, t)).entry(2, bits_of_real(-product, t)).run();
    Bits got = truncate(out.read<uint64_t>()[0], t);
    bool fused = (t == Type::f32 ? f32_of(got) : f64_of(got)) == std::ldexp(1.0, -2 * bits);
    const auto& exact = test::driver().target().traits.fma_exact;
    CHECK(exact[t == Type::f64] == fused);
  }
}

TEST_CASE("strict mode is refused only for a stated reason") {
  runtime::Target t = test::driver().target();
  std::string found = t.strict_refusal;
  t.strict_refusal = "not measured";
  vulkan::measure_rounding(test::driver(), t);
  CHECK(t.strict_refusal == found);
  if (!found.empty()) CHECK(found.find(t.device) != std::string::npos);
}
