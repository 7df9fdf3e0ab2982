// Operators and conversions: what each expression records.
#include "tests/catch.h"
#include "tests/dsl/record.h"

using namespace quern::lang;
using quern::Field;
using quern::test::recorded;

namespace {

/// Does recording `f` yield this line? (Operands are numbered in order of definition.)
template <class F>
bool records(const F& f, const std::string& line) {
  std::string text = recorded(f);
  if (text.find(line + "\n") != std::string::npos) return true;
  UNSCOPED_INFO(text);
  return false;
}
template <class Want, class Got>
constexpr bool yields(const Got&) {
  return std::is_same_v<Got, quern::Val<Want>>;
}

}  // namespace

TEST_CASE("recorded: binary operators record their row") {
  CHECK(records([](F32 a, F32 b) { (void)(a + b); }, "%2 = add %0, %1 : f32"));
  CHECK(records([](F32 a, F32 b) { (void)(a - b); }, "%2 = sub %0, %1 : f32"));
  CHECK(records([](F32 a, F32 b) { (void)(a * b); }, "%2 = mul %0, %1 : f32"));
  CHECK(records([](F32 a, F32 b) { (void)(a / b); }, "%2 = div %0, %1 : f32"));
  CHECK(records([](I32 a, I32 b) { (void)(a % b); }, "%2 = rem %0, %1 : i32"));
  CHECK(records([](I32 a, I32 b) { (void)(a & b); }, "%2 = bit_and %0, %1 : i32"));
  CHECK(records([](I32 a, I32 b) { (void)(a | b); }, "%2 = bit_or %0, %1 : i32"));
  CHECK(records([](I32 a, I32 b) { (void)(a ^ b); }, "%2 = bit_xor %0, %1 : i32"));
  CHECK(records([](I32 a, I32 b) { (void)(a << b); }, "%2 = shl %0, %1 : i32"));
  CHECK(records([](U32 a, U32 b) { (void)(a >> b); }, "%2 = shr %0, %1 : u32"));
  CHECK(records([](I32 a, I32 b) { (void)(a < b); }, "%2 = lt %0, %1 : b1"));
  CHECK(records([](I32 a, I32 b) { (void)(a > b); }, "%2 = gt %0, %1 : b1"));
  CHECK(records([](I32 a, I32 b) { (void)(a <= b); }, "%2 = le %0, %1 : b1"));
  CHECK(records([](I32 a, I32 b) { (void)(a >= b); }, "%2 = ge %0, %1 : b1"));
  CHECK(records([](I32 a, I32 b) { (void)(a == b); }, "%2 = eq %0, %1 : b1"));
  CHECK(records([](I32 a, I32 b) { (void)(a != b); }, "%2 = ne %0, %1 : b1"));
  CHECK(records([](B1 a, B1 b) { (void)(a == b); }, "%2 = eq %0, %1 : b1"));
}

TEST_CASE("recorded: unary operators") {
  CHECK(records([](F32 a) { (void)-a; }, "%1 = neg %0 : f32"));
  CHECK(records([](I32 a) { (void)~a; }, "%1 = bit_not %0 : i32"));
  CHECK(records([](B1 a) { (void)!a; }, "%1 = bit_not %0 : b1"));
  CHECK(records([](U8 a) { (void)-a; }, "%1 = convert %0 : i32"));
}

TEST_CASE("recorded: usual arithmetic conversions, promotions included") {
  recorded([](U8 a, I16 b, I32 c, U32 d, I64 e, U64 f, F32 g, F64 h, B1 k) {
    CHECK(yields<int32_t>(a + a));
    CHECK(yields<int32_t>(a + b));
    CHECK(yields<int32_t>(a + c));
    CHECK(yields<uint32_t>(c + d));
    CHECK(yields<int64_t>(d + e));
    CHECK(yields<uint64_t>(e + f));
    CHECK(yields<float>(c + g));
    CHECK(yields<float>(e * g));
    CHECK(yields<double>(g + h));
    CHECK(yields<int32_t>(k + k));
    CHECK(yields<int32_t>(a << e));
    CHECK(yields<bool>(k & k));
    CHECK(yields<bool>(a < c));
    CHECK(yields<bool>(d < e));  // i64 holds every u32
    CHECK(yields<int32_t>(-a));
    CHECK(yields<int32_t>(~b));
  });
}

TEST_CASE("recorded: a host value adopts the device type it meets") {
  recorded([](F32 x, I32 i, U8 u, I64 w, F64 d, B1 k) {
    CHECK(yields<float>(x * 0.1));
    CHECK(yields<float>(x * 2));
    CHECK(yields<float>(2 * x));
    CHECK(yields<int32_t>(i + std::size_t(5)));
    CHECK(yields<int32_t>(i + 5ll));
    CHECK(yields<int32_t>(u + 1));
    CHECK(yields<int64_t>(w + 1));
    CHECK(yields<double>(d + 1.0f));
    CHECK(yields<double>(0.5 * i));
    CHECK(yields<float>(0.5f * i));
    CHECK(yields<int32_t>(k + 1));
    CHECK(yields<bool>(u == 300));
  });
  CHECK(records([](F32 x) { (void)(x * 0.1); }, "%1 = constant<0.1> : f32"));
  CHECK(records([](I32 i) { (void)(7 - i); }, "%2 = sub %1, %0 : i32"));
}

TEST_CASE("recorded: functions where operands meet keep equal types") {
  recorded([](U8 u, F32 x, I32 i, F64 d, B1 k) {
    CHECK(yields<uint8_t>(min(u, u)));
    CHECK(yields<uint8_t>(max(u, 3)));
    CHECK(yields<float>(min(x, i)));
    CHECK(yields<double>(max(x, d)));
    CHECK(yields<float>(clamp(x, 0, 1)));
    CHECK(yields<int32_t>(select(k, 1, 2)));
    CHECK(yields<uint8_t>(select(k, u, 0)));
    CHECK(yields<double>(select(k, x, d)));
    CHECK(yields<bool>(select(k, k, false)));
    CHECK(yields<float>(sqrt(x)));
    CHECK(yields<double>(pow(d, 2)));
    CHECK(yields<int32_t>(abs(i)));
    CHECK(yields<int32_t>(ifloor(x)));
    CHECK(yields<int8_t>(cast<int8_t>(d)));
    CHECK(yields<uint32_t>(bitcast<uint32_t>(x)));
  });
  CHECK(records([](F32 a, F32 b, F32 c) { (void)fma(a, b, c); }, "%3 = fma %0, %1, %2 : f32"));
  CHECK(records([](B1 c, I32 a, I32 b) { (void)select(c, a, b); }, "%3 = select %0, %1, %2 : i32"));
  CHECK(records([](F32 a) { (void)cast<int>(a); }, "%1 = convert %0 : i32"));
  CHECK(records([](F32 a) { (void)bitcast<int>(a); }, "%1 = bitcast %0 : i32"));
}

TEST_CASE("recorded: guards record the right operand under the left one") {
  CHECK(recorded([](Field<float> x, I32 i) { (void)(i > 0 && x[i - 1] > 0); }) ==
        "body {\n"
        "%0 = param<1> : i32\n"
        "%1 = constant<0> : i32\n"
        "%2 = gt %0, %1 : b1\n"
        "%3 = if %2 : b1 {\n"
        "%4 = constant<1> : i32\n"
        "%5 = sub %0, %4 : i32\n"
        "%6 = load<0.0> %5 : f32\n"
        "%7 = constant<0> : f32\n"
        "%8 = gt %6, %7 : b1\n"
        "yield %8\n"
        "} {\n"
        "%9 = constant<0> : b1\n"
        "yield %9\n"
        "}\n"
        "yield\n"
        "}\n");
  // Nothing is recorded on the right: no region is needed.
  CHECK(records([](B1 a, B1 b) { (void)(a || b); }, "%2 = bit_or %0, %1 : b1"));
  // Side effects on the right run only where the left does not decide.
  CHECK(recorded([](B1 a, Field<int> x, I32 i) { (void)(a || atomic_add(x[i], i) == 0); }) ==
        "body {\n"
        "%0 = param<0> : b1\n"
        "%1 = param<2> : i32\n"
        "%2 = if %0 : b1 {\n"
        "%3 = constant<1> : b1\n"
        "yield %3\n"
        "} {\n"
        "%4 = load<1.0> %1 : i32\n"
        "%5 = atomic.add<1.0> %1, %1 : i32\n"
        "%6 = constant<0> : i32\n"
        "%7 = eq %5, %6 : b1\n"
        "yield %7\n"
        "}\n"
        "yield\n"
        "}\n");
  // A host bool decides at once.
  CHECK(records([](B1 a) { (void)(a && true); }, "%0 = param<0> : b1"));
}

TEST_CASE("recorded: variables have value semantics") {
  CHECK(recorded([](F32 a) {
          Var<float> v = a;
          v += 1;
          auto w = v;  // a copy
          std::swap(v, w);
        }) ==
        "body {\n"
        "%0 = param<0> : f32\n"
        "%1 = slot<1> : slot f32\n"
        "put %1, %0\n"
        "%2 = constant<1> : f32\n"
        "%3 = get %1 : f32\n"
        "%4 = add %3, %2 : f32\n"
        "put %1, %4\n"
        "%5 = get %1 : f32\n"
        "%6 = slot<1> : slot f32\n"
        "put %6, %5\n"
        "%7 = get %1 : f32\n"  // std::swap: t = v
        "%8 = slot<1> : slot f32\n"
        "put %8, %7\n"
        "%9 = get %6 : f32\n"  // v = w
        "put %1, %9\n"
        "%10 = get %8 : f32\n"  // w = t
        "put %6, %10\n"
        "yield\n"
        "}\n");
}

TEST_CASE("recorded: compound assignment of narrow types") {
  // u8 += u8 stays u8; a shift counts in the promoted type.
  CHECK(records(
      [](U8 a) {
        Var<uint8_t> v = a;
        v += a;
      },
      "%3 = add %2, %0 : u8"));
  CHECK(records(
      [](U8 a) {
        Var<uint8_t> v = a;
        v <<= a;
      },
      "%5 = shl %3, %4 : i32"));
}

TEST_CASE("recorded: an element is a snapshot") {
  CHECK(recorded([](Field<int> x) {
          auto old = x[0];
          x[0] = 5;
          x[1] = old;
        }) ==
        "body {\n"
        "%0 = constant<0> : i32\n"
        "%1 = load<0.0> %0 : i32\n"
        "%2 = constant<5> : i32\n"
        "%3 = constant<0> : i32\n"
        "%4 = load<0.0> %3 : i32\n"
        "store<0.0> %3, %2\n"
        "%5 = constant<1> : i32\n"
        "%6 = load<0.0> %5 : i32\n"
        "store<0.0> %5, %1\n"
        "yield\n"
        "}\n");
}

TEST_CASE("recorded: atomics yield the old value") {
  CHECK(records([](Field<int> x, I32 i, I32 v) { (void)atomic_min(x[i], v); },
                "%3 = atomic.min<0.0> %0, %1 : i32"));
  CHECK(records([](Field<int> x, I32 i, I32 v) { (void)atomic_max(x[i], v); },
                "%3 = atomic.max<0.0> %0, %1 : i32"));
  CHECK(records([](Field<int> x, I32 i, I32 v) { (void)atomic_and(x[i], v); },
                "%3 = atomic.bit_and<0.0> %0, %1 : i32"));
  CHECK(records([](Field<int> x, I32 i, I32 v) { (void)atomic_or(x[i], v); },
                "%3 = atomic.bit_or<0.0> %0, %1 : i32"));
  CHECK(records([](Field<int> x, I32 i, I32 v) { (void)atomic_xor(x[i], v); },
                "%3 = atomic.bit_xor<0.0> %0, %1 : i32"));
  CHECK(records([](Field<int> x, I32 i, I32 v) { (void)atomic_exchange(x[i], v); },
                "%3 = atomic.exchange<0.0> %0, %1 : i32"));
  CHECK(records([](Field<int> x, I32 i, I32 v) { (void)atomic_add(x[i], v); },
                "%3 = atomic.add<0.0> %0, %1 : i32"));
  CHECK(records([](Field<int> x, I32 i, I32 v, I32 w) { (void)atomic_cas(x[i], v, w); },
                "%4 = atomic.cas<0.0> %0, %1, %2 : i32"));
  CHECK(records([](Field<int> x) { (void)atomic_load(x[0]); }, "%2 = atomic.load<0.0> %0 : i32"));
  CHECK(records([](Field<float> x) { x[0] -= 2; }, "%3 = neg %0 : f32"));
  CHECK(records([](Field<float, 0> x) { x() += 2; }, "%2 = atomic.add<0.0> %0 : f32"));
}

TEST_CASE("recorded: indices of any integer type") {
  CHECK(records([](Field<int> x, U8 i) { x[i] = 1; }, "%2 = convert %0 : i32"));
  CHECK(records([](Field<int> x, U32 i) { x[i] = 1; }, "%2 = convert %0 : i64"));
  CHECK(records([](Field<int> x, I64 i) { x[i] = 1; }, "store<0.0> %0, %1"));
  CHECK(records([](Field<int> x) { x[5000000000] = 1; }, "%1 = constant<5000000000> : i64"));
  CHECK(records([](Field<int, 3> x, I32 i, I32 j, I32 k) { x(i, j, k) = 1; },
                "store<0.0> %0, %1, %2, %3"));
}

TEST_CASE("recorded: random numbers are made of words") {
  CHECK(records([] { (void)random<uint32_t>(); }, "%4 = random %0, %1, %2, %3 : u32"));
  CHECK(records([] { (void)random<float>(); }, "%8 = constant<5.9604645e-08> : f32"));
}

TEST_CASE("recorded: what reassociate() frees") {
  const std::string text = recorded([](Field<float> x, Field<int> n) {
    for (auto i : x) {
      Var<float> sum = x[i] + 1;
      for (auto _ : reassociate()) {
        sum += x[i] * 2 / 3;
        n[i] = i + 4;
      }
      sum -= 5;
      x[i] = sum;
    }
  });
  auto count = [&](const std::string& word) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at++) n++;
    return n;
  };
  CHECK(count("= add.reassociate") == 1);
  CHECK(count("= mul.reassociate") == 1);
  CHECK(count(".reassociate") == 2);  // no division, no integer, nothing outside
}
