// Atomics of iterations that collide, each operator at every type that takes it, made what the
// target has.
#include <algorithm>
#include <cmath>
#include <random>

#include "ir/passes/atomics/legalise_atomics.h"
#include "tests/backend/harness/harness.h"

using namespace quern;
using namespace quern::ir;
using test::Buffer;
using test::Program;

namespace {

constexpr size_t count = 4000;

/// Those that take lowered kernels, and once more the CPU with one thread, on which atomics are
/// plain updates.
std::vector<runtime::Driver*> drivers_with_atomics() {
  std::vector<runtime::Driver*> all = test::lowering_drivers();
  std::string why;
  for (const runtime::Backend& backend : runtime::backends()) {
    if (backend.name != "cpu") continue;
    runtime::Target target = backend.probe(why).at(0);
    target.workers = 1;
    static runtime::Driver* const one_thread = backend.open(target).release();
    all.push_back(one_thread);
  }
  return all;
}
struct OnEachWithAtomics : test::OnDriver {
  OnEachWithAtomics() : OnDriver(*GENERATE(from_range(drivers_with_atomics()))) {}
};

Program legalised(runtime::Driver& driver, const std::string& text) {
  auto kernel = parse(text);
  legalise_atomics(*kernel, test::target(driver).traits);
  return Program(driver, *kernel);
}

/// Iteration i does rmw.`op` with operand in[i] on the one location at entry 0; old values go to
/// entry 2. All of type `t`.
Program collide(runtime::Driver& driver, const std::string& op, Type t) {
  std::string type(name(t)), size = std::to_string(byte_size(t));
  return legalised(driver, test::each(driver, R"(
    %at = arg<64> : address
    %in = arg<72> : address
    %out = arg<80> : address
    %size = constant<)" + size + "> : i64",
                                      R"(
    %o = mul %i, %size : i64
    %pin = offset %in, %o : address
    %pout = offset %out, %o : address
    %v = read<2> %pin : )" + type + R"(
    %old = rmw.)" + op +
                                          "<1> %at, %v : " + type + "\nwrite<3> %pout, %old"));
}

/// What the location holds before and after the iterations are each the result of exactly one
/// other and its operand, but for the first and the last; and its neighbour is left alone.
template <class T, class F>
T expect_chain(runtime::Driver& driver, const char* op, Type t, T first, const std::vector<T>& in,
               F&& step) {
  INFO(op << " " << name(t));
  Program p = collide(driver, op, t);
  std::vector<T> around(64 / sizeof(T), T(77));
  around[0] = first;
  Buffer at(driver, around), values(driver, in), out(driver, in.size() * sizeof(T));
  p.entry(0, at).entry(1, values).entry(2, out).run(0, in.size(), 16);
  std::vector<T> old = out.template read<T>(), left = at.template read<T>();
  const T last = left[0];
  std::vector<T> before = old, after = {first};
  before.push_back(last);
  for (size_t k = 0; k < in.size(); k++) after.push_back(step(old[k], in[k]));
  std::ranges::sort(before);
  std::ranges::sort(after);
  CHECK(before == after);
  left[0] = first;
  CHECK(left == around);
  return last;
}

/// The same where the order of iterations does not show in the end.
template <class T, class F>
void expect_commuting(runtime::Driver& driver, const char* op, Type t, T first,
                      const std::vector<T>& in, F&& step) {
  T want = first;
  for (T v : in) want = step(want, v);
  CHECK(expect_chain(driver, op, t, first, in, step) == want);
}

template <class T>
void check_integers(runtime::Driver& driver, Type t) {
  std::mt19937_64 random(9);
  std::vector<T> in(count);
  for (T& v : in) v = T(random());
  T first = T(random() | 1);
  auto check = [&](const char* op, auto step) { expect_commuting(driver, op, t, first, in, step); };
  check("add", [](T a, T b) { return T(uint64_t(a) + uint64_t(b)); });
  check("min", [](T a, T b) { return std::min(a, b); });
  check("max", [](T a, T b) { return std::max(a, b); });
  check("bit_and", [](T a, T b) { return T(a & b); });
  check("bit_or", [](T a, T b) { return T(a | b); });
  check("bit_xor", [](T a, T b) { return T(a ^ b); });
  expect_chain(driver, "exchange", t, first, in, [](T, T b) { return b; });
  for (T& v : in) v = T(v | 1);  // the product never becomes zero
  check("mul", [](T a, T b) { return T(uint64_t(a) * uint64_t(b)); });
}

template <class T>
void check_floats(runtime::Driver& driver, Type t) {
  std::vector<T> in(count);
  for (size_t k = 0; k < count; k++) in[k] = T(k % 17) - 3;
  T first = T(0.5);
  // Exact in any order.
  expect_commuting(driver, "add", t, first, in, [](T a, T b) { return a + b; });
  expect_commuting(driver, "min", t, first, in, [](T a, T b) { return std::min(a, b); });
  expect_commuting(driver, "max", t, first, in, [](T a, T b) { return std::max(a, b); });
  expect_chain(driver, "exchange", t, first, in, [](T, T b) { return b; });
  std::vector<T> powers(count);
  for (size_t k = 0; k < count; k++) powers[k] = k % 2 ? T(2) : T(0.5);
  expect_commuting(driver, "mul", t, first, powers, [](T a, T b) { return a * b; });
}

}  // namespace

TEST_CASE_METHOD(OnEachWithAtomics, "integer atomics of colliding iterations") {
  check_integers<int8_t>(driver, Type::i8);
  check_integers<uint8_t>(driver, Type::u8);
  check_integers<int16_t>(driver, Type::i16);
  check_integers<uint16_t>(driver, Type::u16);
  check_integers<int32_t>(driver, Type::i32);
  check_integers<uint32_t>(driver, Type::u32);
  check_integers<int64_t>(driver, Type::i64);
  check_integers<uint64_t>(driver, Type::u64);
}

TEST_CASE_METHOD(OnEachWithAtomics, "float atomics of colliding iterations") {
  check_floats<float>(driver, Type::f32);
  check_floats<double>(driver, Type::f64);
}

TEST_CASE_METHOD(OnEachWithAtomics, "float atomic min and max skip NaN and order the zeros") {
  auto program = [&](const std::string& op) {
    return legalised(driver,
                     test::serial("%p = arg<64> : address\n%v = arg<72> : f32\n%old = rmw." + op +
                                  "<1> %p, %v : f32"));
  };
  Program low = program("min"), high = program("max");
  auto run = [&](Program& p, float start, float v) {
    Buffer at(driver, std::vector<float>{start});
    p.entry(0, at).entry(1, v).run();
    return at.first<float>();
  };
  CHECK(run(low, NAN, 3) == 3);
  CHECK(run(low, 3, NAN) == 3);
  CHECK(run(high, NAN, 3) == 3);
  CHECK(std::isnan(run(low, NAN, NAN)));
  CHECK(std::signbit(run(low, 0.0f, -0.0f)));
  CHECK(std::signbit(run(low, -0.0f, 0.0f)));
  CHECK_FALSE(std::signbit(run(high, -0.0f, 0.0f)));
  CHECK_FALSE(std::signbit(run(high, 0.0f, -0.0f)));
}

TEST_CASE_METHOD(OnEachWithAtomics, "compare and swap, and atomic load, of floats") {
  Program p = legalised(driver, test::serial(R"(
    %p = arg<64> : address
    %e = arg<72> : f32
    %v = arg<80> : f32
    %old = rmw.cas<1> %p, %e, %v : f32
    %now = rmw.load<1> %p : f32
    %four = constant<4> : i64
    %eight = constant<8> : i64
    %q = offset %p, %four : address
    %r = offset %p, %eight : address
    write<1> %q, %old
    write<1> %r, %now)"));
  Buffer x(driver, std::vector<float>{1, 0, 0});
  p.entry(0, x).entry(1, 1.0f).entry(2, 5.0f).run();
  CHECK(x.read<float>() == std::vector<float>{5, 1, 5});
  p.entry(1, 2.0f).entry(2, 9.0f).run();
  CHECK(x.read<float>() == std::vector<float>{5, 5, 5});
}

TEST_CASE_METHOD(OnEachWithAtomics, "one of many compare-and-swaps wins, and all see it") {
  Program p(driver, test::each(driver, R"(
    %at = arg<64> : address
    %out = arg<72> : address
    %zero = constant<0> : u32
    %one = constant<1> : u32
    %four = constant<4> : i64)",
                               R"(
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
    write<2> %po, %r)"));
  Buffer at(driver, std::vector<uint32_t>{0}), out(driver, count * 4);
  p.entry(0, at).entry(1, out).run(0, count, 16);
  uint32_t winner = at.first<uint32_t>();
  CHECK(winner >= 1);
  CHECK(winner <= count);
  CHECK(out.read<uint32_t>() == std::vector<uint32_t>(count, winner));
}
