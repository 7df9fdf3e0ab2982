// Effects, aliasing and slices, on small kernels; expected by hand.
#include <map>

#include "ir/analysis/divergence.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/slice.h"
#include "ir/text/names.h"
#include "quern/ir/text.h"
#include "tests/catch.h"

using namespace quern;
using namespace quern::ir;

namespace {

struct Code {
  std::unique_ptr<Kernel> kernel;
  std::map<std::string, const Value*> values;
  std::vector<const Inst*> insts;  ///< outer before inner

  explicit Code(const std::string& body, const std::string& modes = "")
      : kernel(parse("quern 1\nkernel @k level=structured" + modes +
                     "\nbinding field rank=1 i32, i32 \"x\" class=1\n"
                     "binding field rank=1 i32 \"y\" class=2\nbinding field rank=1 i32 \"z\"\n"
                     "binding scalar i32 \"a\"\nsite print \"\" ()\nbody {\n" +
                     body + "yield\n}\n")) {
    const text::Names names(kernel->body);
    walk(kernel->body, [&](Inst* inst) {
      insts.push_back(inst);
      for (const Value& v : inst->results) values[names(&v)] = &v;
      for (const Region* r : inst->regions)
        for (const Value& v : r->args) values[names(&v)] = &v;
    });
  }
};

}  // namespace

TEST_CASE("two instructions conflict where one writes what the other may touch") {
  Code c(R"(
  %0 = constant<0> : i32
  %1 = slot<1> : slot i32
  %2 = slot<1> : slot i32
  %3 = load<0.0> %0 : i32
  store<1.0> %0, %0
  store<2.0> %0, %0
  put %1, %0
  %4 = get %2 : i32
  %5 = get %1 : i32
  print !0
  print !0
  %6 = call_number : u32
  %7 = call_number : u32
  loop %0, %0, %0 {(%8: i32)
    %9 = slot<1> : slot i32
    put %9, %0
    store<1.0> %0, %0
    yield
  }
)");
  Effects effects(*c.kernel);
  enum { load = 3, store_y, store_z, put, get_other, get, print, print2, draw, draw2, loop };
  auto conflict = [&](int a, int b) {
    const bool one = effects.may_conflict(c.insts[size_t(a)], c.insts[size_t(b)]);
    CHECK(one == effects.may_conflict(c.insts[size_t(b)], c.insts[size_t(a)]));
    return one;
  };
  CHECK_FALSE(conflict(load, load));
  CHECK_FALSE(conflict(load, store_y));
  CHECK(conflict(load, store_z));  // of an unknown class
  CHECK(conflict(store_y, store_z));
  CHECK_FALSE(conflict(load, put));
  CHECK_FALSE(conflict(put, get_other));
  CHECK(conflict(put, get));
  CHECK(conflict(print, print2));
  CHECK_FALSE(conflict(print, store_z));
  CHECK(conflict(draw, draw2));
  CHECK(conflict(loop, store_y));
  CHECK_FALSE(conflict(loop, load));
  CHECK_FALSE(conflict(loop, put));
}

TEST_CASE("a store changes its element, and nothing that is surely another") {
  Code c(R"(
  %0 = param<3> : i32
  %1 = constant<1> : i32
  %2 = add %0, %1 : i32
  %3 = load<0.0> %0 : i32
  %4 = load<0.0> %2 : i32
  %5 = load<0.0> %3 : i32
  %6 = load<0.1> %0 : i32
  %7 = load<1.0> %0 : i32
  %8 = load<2.0> %0 : i32
  store<0.0> %0, %1
)");
  Effects effects(*c.kernel);
  const Inst* store = c.insts[9];
  REQUIRE(store->is(Op::store));
  auto changes = [&](const char* load) {
    return effects.may_change(store, c.values.at(load)->inst);
  };
  CHECK(changes("%3"));
  CHECK_FALSE(changes("%4"));
  CHECK(changes("%5"));
  CHECK_FALSE(changes("%6"));
  CHECK_FALSE(changes("%7"));
  CHECK(changes("%8"));
  CHECK_FALSE(effects.may_change(c.values.at("%3")->inst, c.values.at("%3")->inst));
}

TEST_CASE("a slice is what a value needs, operands first, or says what is in the way") {
  const std::string body = R"(
  %0 = param<3> : i32
  parallel %0, %0 {(%1: i32)
    %2 = constant<3> : i32
    %3 = add %0, %2 : i32
    %4 = mul %3, %3 : i32
    %5 = div %4, %3 : i32
    %6 = add %5, %1 : i32
    %7 = load<0.0> %3 : i32
    %8 = sub %4, %7 : i32
    %9 = call_number : u32
    %10 = slot<1> : slot i32
    %11 = get %10 : i32
    %12 = atomic.add<0.0> %3, %3 : i32
    %13 = load<1.0> %2 : i32
    %14 = add %13, %0 : i32
    yield
  }
)";
  Code c(body), checked(body, " modes=checked");
  const Region* loop = c.values.at("%1")->region;
  Slicer slicer(*c.kernel, loop);
  auto code = [&](const char* name) {
    const Slice slice = slicer.of(c.values.at(name));
    REQUIRE(slice);
    std::vector<const Value*> out;
    for (const Inst* inst : slice.code) out.push_back(inst->result());
    return out;
  };
  auto values = [&](std::vector<std::string> names) {
    std::vector<const Value*> out;
    for (const std::string& name : names) out.push_back(c.values.at(name));
    return out;
  };
  CHECK(code("%0").empty());
  CHECK(code("%3") == values({"%2", "%3"}));
  CHECK(code("%5") == values({"%2", "%3", "%4", "%5"}));
  CHECK(code("%14") == values({"%2", "%13", "%14"}));  // nobody writes y there
  auto obstacle = [](Code& of, const char* name) {
    Slicer s(*of.kernel, of.values.at("%1")->region);
    const Slice slice = s.of(of.values.at(name));
    REQUIRE_FALSE(slice);
    REQUIRE(slice.code.empty());
    for (const auto& [known, v] : of.values)
      if (v == slice.obstacle) return known + ": " + slice.reason;
    return std::string();
  };
  CHECK(obstacle(c, "%6") == "%1: it is an argument of a region, another one in each run");
  CHECK(obstacle(c, "%8") == "%7: what it reads may have changed");
  CHECK(obstacle(c, "%9") == "%9: it is another one each time it is asked for");
  CHECK(obstacle(c, "%11") == "%10: it is another one each time it is asked for");
  CHECK(obstacle(c, "%12") == "%12: it has an effect");
  CHECK(obstacle(checked, "%5") == "%5: it may be an error");
  CHECK(obstacle(checked, "%13") == "%13: it may be an error");

  // At a place that knows the index and asks for the number of calls itself.
  const std::vector<const Value*> given = values({"%1", "%9"});
  Slicer knowing(*c.kernel, loop, given);
  for (const Value* v : given) CHECK(knowing.of(v).code.empty());
  CHECK(knowing.of(c.values.at("%6")).code.size() == 5);
  CHECK_FALSE(knowing.of(c.values.at("%8")));

  // Made once more before the loop, with another value in the place of %0.
  Builder b(*c.kernel);
  b.before(loop->parent);
  Value* seven = b.integer(Type::i32, 7);
  ValueMap map = {{c.values.at("%0"), seven}};
  repeat(b, slicer.of(c.values.at("%4")), map);
  const Value* copy = map.at(c.values.at("%4"));
  CHECK(copy->inst->parent == c.kernel->body);
  CHECK(copy->inst->operand(0)->inst->operand(0) == seven);
}

TEST_CASE("iterations and numbers of calls differ among the threads of a block") {
  auto k = parse(R"(quern 1
kernel @k level=opened
binding frame ""
task range rank=1 walk=element domain {
  %lo = constant<0> : i64
  %hi = constant<8> : i64
  yield %lo, %hi
} {
  %lo = constant<0> : i64
  %hi = constant<8> : i64
  parallel %lo, %hi {(%i: i64)
    %key = launch_key : u64
    %loop = ordinal : u32
    %n = iteration : u64
    %c = call_number : u32
    %r = random %key, %loop, %n, %c : u32
    %same = add %loop, %loop : u32
    yield
  }
  yield
})");
  const Divergence divergence(*k, k->tasks[0]);
  std::map<Op, bool> varies;
  walk(k->tasks[0].body, [&](const Inst* inst) {
    if (!inst->results.empty()) varies[inst->op] = divergence.varies(inst->result());
  });
  CHECK(varies == std::map<Op, bool>{{Op::constant, false},
                                     {Op::launch_key, false},
                                     {Op::ordinal, false},
                                     {Op::iteration, true},
                                     {Op::call_number, true},
                                     {Op::random, true},
                                     {Op::add, false}});
}
