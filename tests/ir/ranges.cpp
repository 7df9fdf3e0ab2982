// Value ranges: numbers, exact sums and questions about forms; expected by hand.
#include <map>
#include <string>

#include "ir/analysis/float_ranges.h"
#include "ir/analysis/ranges.h"
#include "ir/text/names.h"
#include "quern/ir/text.h"
#include "tests/catch.h"

using namespace quern;
using namespace quern::ir;

namespace {

struct Ranged {
  std::unique_ptr<Kernel> kernel;
  std::map<std::string, const Value*> values;
  Ranges ranges;

  explicit Ranged(const std::string& code)
      : kernel(parse("quern 1\nkernel @k level=structured\n"
                     "binding field rank=1 i32 \"x\"\nbinding scalar i32 \"a\"\n"
                     "binding field rank=1 u8 \"small\"\nbody {\n" +
                     code + "yield\n}\n")),
        ranges(kernel->body, kernel.get()) {
    const text::Names names(kernel->body);
    walk(kernel->body, [&](Inst* inst) {
      for (const Value& v : inst->results) values[names(&v)] = &v;
      for (const Region* r : inst->regions)
        for (const Value& v : r->args) values[names(&v)] = &v;
    });
  }
  Interval of(const std::string& name) { return ranges.of(values.at(name)); }
  /// low + constant ≤ high where the value `at` is made?
  bool at_most(const std::string& low, int64_t constant, const std::string& high,
               const std::string& at) {
    const Value* place = values.at(at);
    std::optional<Affine> form =
        sum(ranges.exact(values.at(high)), ranges.exact(values.at(low)), -1);
    REQUIRE(form);
    form->constant -= constant;
    return ranges.not_negative(*form, place->inst ? place->inst->parent : place->region);
  }
};

constexpr int64_t least = INT32_MIN, most = INT32_MAX;

}  // namespace

TEST_CASE("ranges as numbers: arithmetic that may wrap is any value") {
  Ranged r(R"(
  %0 = param<1> : i32
  %1 = constant<7> : i32
  %2 = rem %0, %1 : i32
  %3 = bit_and %0, %1 : i32
  %4 = max %2, %3 : i32
  %5 = add %2, %3 : i32
  %6 = mul %2, %1 : i32
  %7 = neg %2 : i32
  %8 = shr %0, %1 : i32
  %9 = shl %2, %1 : i32
  %10 = add %0, %1 : i32
  %11 = abs %0 : i32
  %12 = abs %2 : i32
  %13 = min %0, %1 : i32
  %14 = div %2, %1 : i32
  %15 = convert %0 : u8
  %16 = convert %15 : i64
  %17 = convert %2 : i8
  %18 = clz %0 : i32
  %19 = load<2.0> %1 : u8
  %20 = convert %19 : i32
  %21 = extent<0.0> : i32
  %22 = rem %21, %1 : i32
  %23 = convert %0 : u64
  %24 = shr %23, %23 : u64
  %25 = rem %1, %0 : i32
)");
  CHECK(r.of("%0") == Interval{least, most});
  CHECK(r.of("%2") == Interval{-6, 6});
  CHECK(r.of("%3") == Interval{0, 7});
  CHECK(r.of("%4") == Interval{0, 7});
  CHECK(r.of("%5") == Interval{-6, 13});
  CHECK(r.of("%6") == Interval{-42, 42});
  CHECK(r.of("%7") == Interval{-6, 6});
  CHECK(r.of("%8") == Interval{-16777216, 16777215});
  CHECK(r.of("%9") == Interval{-768, 768});
  CHECK(r.of("%10") == Interval{least, most});
  CHECK(r.of("%11") == Interval{least, most});  // |-2^31| wraps
  CHECK(r.of("%12") == Interval{0, 6});
  CHECK(r.of("%13") == Interval{least, 7});
  CHECK(r.of("%14") == Interval{0, 0});
  CHECK(r.of("%15") == Interval{0, 255});
  CHECK(r.of("%16") == Interval{0, 255});
  CHECK(r.of("%17") == Interval{-6, 6});
  CHECK(r.of("%18") == Interval{0, 32});
  CHECK(r.of("%20") == Interval{0, 255});
  CHECK(r.of("%21") == Interval{0, most});
  CHECK(r.of("%22") == Interval{0, 6});
  CHECK(r.of("%23") == Interval{0, INT64_MAX});  // and beyond
  CHECK(r.of("%24") == Interval{0, INT64_MAX});
  CHECK(r.of("%25") == Interval{0, 7});  // 7 % 0 = 7
}

TEST_CASE("ranges of loop indices come from the bounds") {
  Ranged r(R"(
  %0 = constant<2> : i32
  %1 = constant<9> : i32
  %2 = extent<0.0> : i32
  parallel %0, %1, %0, %2 {(%3: i32, %4: i32)
    %5 = add %3, %4 : i32
    loop %3, %1, %0 {(%6: i32)
      yield
    }
    yield
  }
)");
  CHECK(r.of("%3") == Interval{2, 8});
  CHECK(r.of("%4") == Interval{2, most - 1});
  CHECK(r.of("%5") == Interval{least, most});
  CHECK(r.of("%6") == Interval{2, 8});
  CHECK(r.at_most("%4", 1, "%2", "%5"));
  CHECK_FALSE(r.at_most("%4", 2, "%2", "%5"));
  CHECK(r.at_most("%3", 0, "%6", "%6"));
  CHECK(r.at_most("%0", 1, "%2", "%5"));  // the loop runs, so there is room
  CHECK_FALSE(r.at_most("%0", 2, "%2", "%5"));
}

TEST_CASE("the indices of a loop over a field are those of the field") {
  Ranged r(R"(
  %0 = first<0.0> : i64
  %1 = extent<0.0> : i64
  %2 = add %0, %1 : i64
  parallel over=0 {(%3: i32)
    %4 = add %3, %3 : i32
    yield
  }
)");
  CHECK(r.of("%3") == Interval{-(int64_t(1) << 30), most - 1});
  CHECK(r.at_most("%3", 1, "%2", "%4"));
  CHECK_FALSE(r.at_most("%3", 2, "%2", "%4"));
  CHECK(r.at_most("%0", 0, "%3", "%4"));
  CHECK_FALSE(r.at_most("%0", 1, "%3", "%4"));
  // Before it is known where the field lies it may be anywhere, as trees that are hashed do.
  Ranges anywhere(r.kernel->body);
  CHECK(anywhere.of(r.values.at("%3")) == Interval{INT32_MIN, most - 1});
  CHECK(anywhere.of(r.values.at("%0")) == Interval{INT32_MIN, most});
}

TEST_CASE("facts come from the conditions around, and hold only there") {
  Ranged r(R"(
  %0 = constant<0> : i32
  %1 = constant<1> : i32
  %2 = extent<0.0> : i32
  %3 = sub %2, %1 : i32
  parallel %0, %2 {(%4: i32)
    %5 = gt %4, %0 : b1
    %6 = if %5 : b1 {
      %7 = lt %4, %3 : b1
      yield %7
    } {
      %8 = constant<0> : b1
      yield %8
    }
    if %6 {
      %9 = add %4, %1 : i32
      %10 = sub %4, %1 : i32
      yield
    } {
      %11 = add %4, %1 : i32
      yield
    }
    %12 = eq %4, %0 : b1
    if %12 {
      yield
    } {
      %13 = sub %4, %1 : i32
      yield
    }
    %14 = bit_or %5, %12 : b1
    if %14 {
      yield
    } {
      %15 = sub %0, %4 : i32
      yield
    }
    yield
  }
)");
  CHECK(r.at_most("%9", 1, "%2", "%9"));
  CHECK_FALSE(r.at_most("%9", 2, "%2", "%9"));
  CHECK(r.at_most("%0", 0, "%10", "%10"));
  CHECK_FALSE(r.at_most("%1", 0, "%10", "%10"));
  CHECK(r.at_most("%1", 0, "%4", "%10"));
  CHECK_FALSE(r.at_most("%1", 0, "%4", "%5"));    // before the branch
  CHECK_FALSE(r.at_most("%11", 1, "%2", "%11"));  // on its other side
  CHECK(r.at_most("%1", 0, "%4", "%13"));         // 0 ≤ i ≠ 0
  CHECK(r.at_most("%4", 0, "%0", "%15"));         // not i > 0
}

TEST_CASE("facts of minima, maxima, selects, remainders, quotients and shifts") {
  Ranged r(R"(
  %0 = constant<0> : i32
  %1 = constant<1> : i32
  %2 = constant<2> : i32
  %3 = extent<0.0> : i32
  %4 = sub %3, %1 : i32
  parallel %0, %3 {(%5: i32)
    %6 = add %5, %2 : i32
    %7 = min %6, %4 : i32
    %8 = max %7, %0 : i32
    %9 = eq %5, %0 : b1
    %10 = sub %5, %1 : i32
    %11 = select %9, %4, %10 : i32
    %12 = add %5, %1 : i32
    %13 = div %5, %2 : i32
    %14 = shr %5, %1 : i32
    %15 = mul %13, %2 : i32
    %16 = param<1> : i32
    %17 = rem %5, %16 : i32
    %18 = rem %12, %3 : i32
    %19 = rem %6, %3 : i32
    yield
  }
)");
  for (const char* index : {"%8", "%11", "%13", "%14", "%15", "%17", "%18"}) {
    CAPTURE(index);
    CHECK(r.at_most("%0", 0, index, "%6"));
    CHECK(r.at_most(index, 1, "%3", "%6"));
  }
  CHECK(r.at_most("%7", 1, "%3", "%6"));
  CHECK_FALSE(r.at_most("%6", 1, "%3", "%6"));
  CHECK_FALSE(r.at_most("%17", 1, "%16", "%6"));  // i % 0 = i
  CHECK_FALSE(r.at_most("%0", 0, "%19", "%6"));   // i + 2 is negative where n = 2^31 - 1
}

TEST_CASE("what wraps is a symbol of its own") {
  Ranged r(R"(
  %0 = param<1> : i32
  %1 = constant<1> : i32
  %2 = sub %0, %1 : i32
  %3 = constant<0> : i32
  parallel %3, %0 {(%4: i32)
    %5 = lt %4, %2 : b1
    if %5 {
      %6 = add %4, %1 : i32
      yield
    } {
      yield
    }
    yield
  }
)");
  CHECK(r.at_most("%6", 0, "%2", "%6"));
  CHECK_FALSE(r.at_most("%6", 1, "%0", "%6"));  // a - 1 is 2^31 - 1 where a is -2^31
}

TEST_CASE("ranges of floats: a conversion fits where no value is out of range or a NaN") {
  Ranged r(R"(
  %0 = constant<0> : i32
  %1 = load<2.0> %0 : u8
  %2 = convert %1 : f32
  %3 = constant<-4> : f32
  %4 = mul %2, %3 : f32
  %5 = mul %4, %4 : f32
  %6 = sqrt %5 : f32
  %7 = constant<255> : f32
  %8 = round %6 : f32
  %9 = min %8, %7 : f32
  %10 = sqrt %4 : f32
  %11 = min %10, %7 : f32
  %12 = min %7, %10 : f32
  %13 = fmin %10, %7 : f32
  %14 = constant<0> : f32
  %15 = fmax %13, %14 : f32
  %16 = sub %2, %7 : f32
  %17 = bitcast %0 : f32
  %18 = mul %17, %14 : f32
  %19 = param<1> : i32
  %20 = convert %19 : f32
  %21 = abs %16 : f32
  %22 = convert %9 : f64
  %23 = fma %2, %2, %3 : f32
  %24 = constant<nan:0x7fc00000> : f32
)");
  FloatRanges floats(r.ranges);
  auto fits = [&](const char* name, Type t) { return floats.fits(r.values.at(name), t); };
  CHECK(fits("%2", Type::u8));
  CHECK_FALSE(fits("%2", Type::i8));
  CHECK(fits("%4", Type::i16));
  CHECK_FALSE(fits("%4", Type::u16));
  CHECK(fits("%8", Type::i16));  // sqrt(1020²)
  CHECK_FALSE(fits("%8", Type::u8));
  CHECK(fits("%9", Type::u8));
  CHECK_FALSE(fits("%9", Type::i8));
  CHECK(fits("%22", Type::u8));
  CHECK_FALSE(fits("%10", Type::u8));  // the root of what may be negative
  CHECK_FALSE(fits("%11", Type::u8));  // min(NaN, b) is a NaN
  CHECK_FALSE(fits("%12", Type::u8));  // min(255, x) may be below 0
  CHECK_FALSE(fits("%13", Type::u8));
  CHECK(fits("%15", Type::u8));
  CHECK(fits("%16", Type::i16));
  CHECK_FALSE(fits("%16", Type::u8));
  CHECK(fits("%21", Type::u16));
  CHECK_FALSE(fits("%18", Type::i64));  // 0 · infinity
  CHECK_FALSE(fits("%20", Type::i32));  // 2^31 - 1 is rounded up
  CHECK(fits("%20", Type::i64));
  CHECK(fits("%23", Type::i32));
  CHECK_FALSE(fits("%23", Type::u32));
  CHECK_FALSE(fits("%24", Type::u8));
}
