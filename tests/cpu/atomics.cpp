// Every atomic at every type from several threads at once.
#include <cmath>

#include "tests/catch.h"
#include "tests/cpu/support.h"

using namespace quern;
using test::Program;

namespace {

/// Iteration i applies `op` with value i % 100 + 1 (of type T) to the one location.
std::string hammer(const std::string& op, const std::string& type) {
  return R"(quern 1
  kernel @k level=lowered
  task range rank=1 walk=chunked domain { yield } {
    %p = arg<64> : address
    %lo = builtin.begin : i64
    %hi = builtin.end : i64
    %one = constant<1> : i64
    %hundred = constant<100> : i64
    loop %lo, %hi, %one {(%i: i64)
      %r = rem %i, %hundred : i64
      %k = add %r, %one : i64
      %v = convert %k : )" +
         type + "\n%old = rmw." + op + "<1> %p, %v : " + type + "\nyield\n}\nyield\n}\n";
}

template <class T>
T result_of(const std::string& op, const std::string& type, T start, uint64_t n) {
  Program p(hammer(op, type));
  alignas(8) T x[2] = {start, start};
  p.entry(0, x).run(0, n, 16);
  CHECK(x[1] == start);  // the neighbour is left alone
  return x[0];
}

template <class T>
void check_type(const std::string& type) {
  INFO(type);
  constexpr uint64_t n = 20000;  // 200 rounds of 1..100
  CHECK(result_of<T>("add", type, T(3), n) == T(3 + 200 * 5050));
  CHECK(result_of<T>("min", type, T(50), n) == T(1));
  CHECK(result_of<T>("max", type, T(50), n) == T(100));
  T last = result_of<T>("exchange", type, T(0), n);
  CHECK(last >= T(1));
  CHECK(last <= T(100));
  CHECK(result_of<T>("mul", type, T(2), 4) == T(48));
}

template <class T>
void check_bits(const std::string& type) {
  INFO(type);
  T every_or = 0, every_xor = T(0x55);
  for (int k = 1; k <= 100; k++) every_or = T(every_or | k);
  CHECK(result_of<T>("bit_or", type, T(0), 20000) == every_or);
  CHECK(result_of<T>("bit_and", type, T(0x7f), 20000) == T(0));
  for (int r = 0; r < 199; r++)
    for (int k = 1; k <= 100; k++) every_xor = T(every_xor ^ k);
  CHECK(result_of<T>("bit_xor", type, T(0x55), 19900) == every_xor);
}

}  // namespace

TEST_CASE("atomic updates lose nothing") {
  check_type<int8_t>("i8");
  check_type<uint8_t>("u8");
  check_type<int16_t>("i16");
  check_type<uint16_t>("u16");
  check_type<int32_t>("i32");
  check_type<uint32_t>("u32");
  check_type<int64_t>("i64");
  check_type<uint64_t>("u64");
  check_type<float>("f32");
  check_type<double>("f64");
}

TEST_CASE("atomic bit operations lose nothing") {
  check_bits<int8_t>("i8");
  check_bits<uint8_t>("u8");
  check_bits<uint16_t>("u16");
  check_bits<int32_t>("i32");
  check_bits<uint64_t>("u64");
}

TEST_CASE("float atomic min and max skip NaN and order the zeros") {
  auto text = [](const char* op) {
    return std::string(
               "quern 1\nkernel @k level=lowered\ntask serial {\n%p = arg<64> : address\n"
               "%v = arg<72> : f32\n%old = rmw.") +
           op + "<1> %p, %v : f32\nyield\n}\n";
  };
  Program low(text("min")), high(text("max"));
  auto run = [](Program& p, float start, float v) {
    p.entry(0, &start).value(1, v).run();
    return start;
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

TEST_CASE("compare-and-swap and atomic load") {
  Program p(R"(quern 1
  kernel @k level=lowered
  task serial {
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
    write<1> %r, %now
    yield
  })");
  float x[3] = {1, 0, 0};
  p.entry(0, x).value(1, 1.0f).value(2, 5.0f).run();
  CHECK((x[0] == 5 && x[1] == 1 && x[2] == 5));
  p.value(1, 2.0f).value(2, 9.0f).run();
  CHECK((x[0] == 5 && x[1] == 5 && x[2] == 5));
}
