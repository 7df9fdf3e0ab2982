// One broken kernel per rule; what the verifier says names the instruction and the rule.
#include "quern/error.h"
#include "quern/ir/builder.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"
#include "tests/ir/refuse.h"

using namespace quern;
using namespace quern::ir;

namespace {

struct Rule {
  const char* code;
  const char* says;
};

const std::string parts = R"(
binding scalar i32 "n"
binding field rank=2 f32, i32, b1 "x"
site check "c {}" (i32)
site print "p {}" (f32)
function @f(%a: f32) -> (f32) { yield %a }
)";

/// Values that the cases use.
const std::string values = R"(
  %n = param<0> : i32
  %z = constant<0> : i32
  %one = constant<1> : i32
  %f = constant<1.5> : f32
  %d = constant<1.5> : f64
  %l = constant<7> : i64
  %t = constant<1> : b1
  %u = constant<3> : u8
  %s = slot<1> : slot f32
  %a = slot<8> : slot i32
)";

std::string body(const std::string& level, const std::string& code) {
  return "quern 1\nkernel @k level=" + level + parts + "body {" + values + code + "}\n";
}

}  // namespace

TEST_CASE("the surroundings of the cases are sound") {
  for (const char* level : {"recorded", "structured"})
    CHECK(verify(*parse(body(level, "yield\n"))) == std::vector<std::string>{});
}

TEST_CASE("rules of instructions") {
  const Rule rules[] = {
      // types of element-wise operations
      {"%r = add %n, %f : f32", "operand 0 is i32, expected f32"},
      {"%r = add %n, %n : i64", "gives (i64), expected (i32)"},
      {"%r = add %n : i32", "has 1 operand, expected 2"},
      {"%r = add %t, %t : b1", "does not take b1"},
      {"%r = rem %f, %f : f32", "does not take f32"},
      {"%r = sqrt %n : i32", "does not take i32"},
      {"%r = shl %l, %n : i64", "operand 0 is i64, expected i32"},
      {"%r = lt %n, %n : i32", "gives (i32), expected (b1)"},
      {"%r = lt %t, %t : b1", "does not take b1"},
      {"%r = select %n, %f, %f : f32", "operand 0 is i32, expected b1"},
      {"%r = select %t, %f, %d : f64", "operand 1 is f32, expected f64"},
      {"%r = bitcast %f : i64", "from f32 to i64, expected equal widths"},
      {"%r = bitcast %t : b1", "expected equal widths"},
      {"%r = add.reassociate %n, %n : i32", "has a flag that only float arithmetic has"},
      {"%r = lt.uncontracted %f, %f : b1", "has a flag that only float arithmetic has"},
      {"%r = convert %f : slot", "gives slot, which no value has"},
      {"%r = neg %s : f32", "uses a slot, which slot operations alone may"},
      {"print %f, %f, %f, %f, %f, %s !1", "uses a slot, which slot operations alone may"},
      {"add %n, %n", "gives (), expected (i32)"},
      // parameters and storage
      {"%r = param<7> : i32", "binding 7 does not exist: the kernel has 2"},
      {"%r = param<1> : f32", "binding is no scalar"},
      {"%r = param<0> : f32", "gives (f32), expected (i32)"},
      {"%r = extent<1.2> : i32", "axis 2 does not exist: the rank is 2"},
      {"%r = extent<0.0> : i32", "binding is no field"},
      {"%r = extent<1.0> : f32", "gives no integer"},
      {"%r = load<1.0> %n : f32", "has 1 operand, expected 2"},
      {"%r = load<1.0> %n, %f : f32", "operand 1 is f32, expected an integer index"},
      {"%r = load<1.1> %n, %n : f32", "moves f32, expected i32"},
      {"%r = load<1.3> %n, %n : f32", "component 3 does not exist"},
      {"%r = load<0.0> : i32", "binding has no elements"},
      {"store<1.0> %n, %n, %n", "operand 2 is i32, expected f32"},
      {"store<1.0> %n, %f", "has 2 operands, expected 3"},
      {"%r = atomic.cas<1.1> %n, %n, %n : i32", "has 3 operands, expected 4"},
      {"%r = atomic.load<1.1> %n, %n, %n : i32", "has 3 operands, expected 2"},
      {"%r = atomic.bit_or<1.0> %n, %n, %f : f32", "no bit_or on f32"},
      {"%r = atomic.add<1.2> %n, %n, %t : b1", "no add on b1"},
      // slots
      {"%r = slot<0> : slot f32", "holds no element"},
      {"%r = slot<1> : slot address", "holds address, expected a scalar"},
      {"%r = slot.unset<4> : slot f32", "has an unknown kind or flag"},
      {"%r = get %n : i32", "operand 0 is i32, expected a slot"},
      {"%r = get %a : i32", "a slot of 8 elements needs an index"},
      {"%r = get %a, %f : i32", "operand 1 is f32, expected an integer index"},
      {"%r = get %s : f64", "moves f64, expected f32"},
      {"put %s, %n", "moves i32, expected f32"},
      {"put %s", "has 1 operand, expected 2 to 3"},
      {"reduce.add %s, %f", "stands in no parallel loop"},
      {"parallel %z, %n {(%i: i32)\n %q = slot<1> : slot f32\n reduce.add %q, %f\n yield }",
       "its slot stands in the parallel loop"},
      {"parallel %z, %n {(%i: i32)\n reduce.add %a, %i\n yield }", "reduces into an array"},
      {"parallel %z, %n {(%i: i32)\n reduce.exchange %s, %f\n yield }",
       "no reduction by exchange on f32"},
      {"parallel %z, %n {(%i: i32)\n reduce.bit_or %s, %f\n yield }",
       "no reduction by bit_or on f32"},
      {"parallel %z, %n {(%i: i32)\n reduce.add %s, %i\n yield }",
       "operand 1 is i32, expected f32"},
      // structure
      {"parallel %z {(%i: i32)\n yield }", "has rank 0, expected 1 to 8"},
      {"parallel %z, %n, %z {(%i: i32)\n yield }", "has 3 operands, expected 2"},
      {"parallel %z, %l {(%i: i32)\n yield }", "operand 1 is i64, expected i32"},
      {"parallel %u, %u {(%i: u8)\n yield }", "bounds are u8, expected i32 or i64"},
      {"parallel %z, %n {(%i: i64)\n yield }", "region 0 takes (i64), expected (i32)"},
      {"parallel over=9 {(%i: i32)\n yield }", "binding 9 does not exist: the kernel has 2"},
      {"parallel over=0 {(%i: i32)\n yield }", "binding is no field"},
      {"parallel over=1 {(%i: i32)\n yield }", "has rank 1, its field 2"},
      {"parallel over=1 { yield }", "has rank 0, expected 1 to 8"},
      {"parallel over=1 %z, %n {(%i: i32, %j: i32)\n yield }", "has 2 operands, expected 0"},
      {"parallel over=1 {(%i: u8, %j: u8)\n yield }", "indices are u8, expected i32 or i64"},
      {"parallel over=1 {(%i: i32, %j: i64)\n yield }",
       "region 0 takes (i32, i64), expected (i32, i32)"},
      {"parallel %z, %n {(%i: i32)\n yield %i }", "yields (i32), parallel region 0 wants ()"},
      {"parallel %z, %n {(%i: i32)\n parallel %z, %n {(%j: i32)\n yield }\n yield }",
       "stands in another parallel loop"},
      {"loop %z, %n {(%i: i32)\n yield }", "has 2 operands, expected 3 or more"},
      {"loop %f, %f, %f {(%i: f32)\n yield }", "operand 0 is f32, expected an integer"},
      {"loop %z, %n, %l {(%i: i32)\n yield }", "operand 2 is i64, expected i32"},
      {"%r = loop %z, %n, %one, %f : f32 {(%i: i32)\n yield }",
       "region 0 takes (i32), expected (i32, f32)"},
      {"%r = loop %z, %n, %one, %f : f32 {(%i: i32, %c: f32)\n yield %i }",
       "yields (i32), loop region 0 wants (f32)"},
      {"loop %z, %n, %one, %f {(%i: i32, %c: f32)\n yield %c }", "gives (), expected (f32)"},
      {"loop.parallel_walk %z, %n, %one {(%i: i32)\n yield }", "has an unknown kind or flag"},
      {"%r = while %f : f32 {(%c: f32)\n yield %t, %c }", "has 1 region, expected 2"},
      {"%r = while %f : f32 {(%c: f32)\n yield %c }  {(%e: f32)\n yield %e }",
       "yields (f32), while region 0 wants (b1, f32)"},
      {"%r = while %f : f32 {(%c: f32)\n yield %t, %c }  {(%e: f32)\n yield }",
       "yields (), while region 1 wants (f32)"},
      {"while {\n yield %t } {(%e: f32)\n yield }", "region 1 takes (f32), expected ()"},
      {"if %n {\n yield } {\n yield }", "operand 0 is i32, expected b1"},
      {"if %t {\n yield }", "has 1 region, expected 2"},
      {"if %t {(%i: i32)\n yield } {\n yield }", "region 0 takes (i32), expected ()"},
      {"%r = if %t : f32 {\n yield %f } {\n yield }", "yields (), if region 1 wants (f32)"},
      {"if %t", "has 0 regions"},
      {"%r = neg %f : f32 {\n yield }", "has 1 regions"},
      // calls
      {"call<4>", "function 4 does not exist"},
      {"%r = call<0> %n : f32", "passes (i32), f takes (f32)"},
      {"call<0> %f", "gives (), expected (f32)"},
      // effects and sites
      {"check %n, %n !0", "operand 0 is i32, expected b1"},
      {"check %t, %n", "has no site"},
      {"check %t, %n !9", "site 9 does not exist"},
      {"check %t, %f !0", "reports (f32), its site says (i32)"},
      {"check %t, %n !1", "site 1 is of another kind"},
      {"print %f, %f !1", "reports (f32, f32), its site says (f32)"},
      {"print %n !0", "site 0 is of another kind"},
      {"%r = call_number : i32", "gives (i32), expected (u32)"},
      {"%r = iteration : u32", "gives (u32), expected (u64)"},
      {"%k = launch_key : u64\n%o = ordinal : u32\n%r = random %k, %o, %o, %o : u32",
       "operand 2 is u32, expected u64"},
      {"%r = load<1.0> %n, %n : f32 !9", "site 9 does not exist"},
      // other levels
      {"%r = builtin.chunk : i64", "not allowed at this level"},
      {"%r = arg<64> : address", "not allowed at this level"},
      {"loop %z, %n, %one {(%i: i32)\n break<1> }", "not allowed at this level"},
      {"if %t { return } { yield }", "not allowed at this level"},
      // order
      {"if %t {\n %v = neg %f : f32\n yield } {\n %w = neg %v : f32\n yield }",
       "operand 0 is not defined where it is used"},
      {"yield\n %v = neg %f : f32", "a terminator stands within a region"},
  };
  for (const Rule& r : rules) refuse(body("structured", std::string(r.code) + "\nyield\n"), r.says);
  refuse(body("structured", ""), "a region does not end in a terminator");
  refuse(body("structured", "if %t { } { yield }\nyield\n"),
         "a region does not end in a terminator");
  refuse(body("structured", "yield %f\n"), "yields (f32), the kernel wants ()");
}

TEST_CASE("rules of functions with a derivative of their own") {
  auto kernel = [](const std::string& function, const std::string& code) {
    return "quern 1\nkernel @k level=structured modes=checked" + parts + function + "body {" +
           values + code + "yield }\n";
  };
  const std::string good = "function @g(%a: f32) -> (f32) derivative=@rule { yield %a }\n";
  CHECK(verify(*parse(kernel(good, "%r = apply<1> %f : f32\n"))) == std::vector<std::string>{});
  refuse(kernel(good, "%r = call<1> %f : f32\n"), "of g, which has a derivative of its own");
  refuse(kernel(good, "%r = apply<0> %f : f32\n"), "of f, which has no derivative of its own");
  refuse(kernel(good, "%r = apply<2> %f : f32\n"), "function 2 does not exist");
  refuse(kernel(good, "%r = apply<1> %n : f32\n"), "passes (i32), g takes (f32)");
  refuse(kernel(good, "%r = apply<1> %f : i32\n"), "gives (i32), expected (f32)");

  const char* bodies[] = {
      "%b = param<0> : i32",
      "%b = constant<0> : i32 %x = load<1.0> %b, %b : f32",
      "%b = extent<1.0> : i32",
      "%b = constant<0> : i32 %c = constant<1> : b1 check %c, %b !0",
      "%b = call<2> %a : f32",
      "%b = convert %a : i32",  // may be out of range
      "%b = constant<3> : i32 %c = bitcast %a : i32 %d = div %b, %c : i32",
      "%b = bitcast %a : i32 %s = slot<4> : slot f32 %x = get %s, %b : f32",
      "%b = bitcast %a : i32 %s = slot<4> : slot f32 put %s, %b, %a",
      "%b = launch_key : u64",
  };
  for (const char* body : bodies)
    refuse(kernel("function @g(%a: f32) -> (f32) derivative=@rule { " + std::string(body) +
                      " yield %a }\n"
                      "function @random(%a: f32) -> (f32) { %k = launch_key : u64 yield %a }\n",
                  ""),
           "in a function with a derivative of its own");
  // Slots, branches and loops of its own, and what cannot fail.
  const std::string own =
      "function @g(%a: f32) -> (f32) derivative=@rule { %s = slot<1> : slot f32 put %s, %a "
      "%z = constant<0> : i32 %n = constant<3> : i32 %q = div %z, %n : i32 "
      "loop %z, %n, %n {(%k: i32) %b = get %s : f32 %c = lt %b, %a : b1 "
      "if %c { put %s, %b yield } { yield } yield } %t = call<0> %a : f32 "
      "%v = slot<4> : slot f32 put %v, %n, %t %w = get %v, %n : f32 "
      "%r = apply<2> %t : f32 yield %r }\n"
      "function @h(%a: f32) -> (f32) derivative=@other { yield %a }\n";
  CHECK(verify(*parse(kernel(own, ""))) == std::vector<std::string>{});
  refuse(
      "quern 1\nkernel @k level=structured\n"
      "function @g(%a: f32) -> (f32) derivative=@rule { %b = apply<0> %a : f32 yield %b }\n"
      "body { yield }\n",
      "function g calls itself");
  refuse(
      "quern 1\nkernel @k level=lowered\n"
      "function @g(%a: f32) -> (f32) derivative=@rule { yield %a }\n"
      "task serial { %a = constant<1> : f32 %b = apply<0> %a : f32 yield }\n"
      "schedule { launch 0 }\n",
      "not allowed at this level");
}

TEST_CASE("rules that give the derivative of a function") {
  const auto kernel = [](const char* rules, const char* push, const char* pull) {
    return "quern 1\nkernel @k level=structured\n"
           "function @f(%a: f16, %n: i32) -> (f64, i32) derivative=@own" +
           std::string(rules) +
           " { %b = convert %a : f64 yield %b, %n }\n"
           "function @push(%a: f16, %n: i32, %b: f64, %m: i32, %t: f32) -> " +
           push + "\nfunction @pull(%a: f16, %n: i32, %b: f64, %m: i32, %t: f64) -> " + pull +
           "\nfunction @none(%a: f16, %n: i32, %b: f64, %m: i32, %t: f64) { yield }\n"
           "body { yield }\n";
  };
  const char *push = "(f64) { %r = convert %t : f64 yield %r }",
             *pull = "(f32) { %r = convert %t : f32 yield %r }";
  for (const char* good : {"", " pushforward=1", " pullback=2", " pushforward=1 pullback=2",
                           " pushforward=1 pullback=3"}) {
    const auto k = parse(kernel(good, push, pull));
    CHECK(verify(*k) == std::vector<std::string>{});
    CHECK(print(*parse(print(*k))) == print(*k));
    CHECK(print(*k).find("derivative=@own" + std::string(good) + " {") != std::string::npos);
  }
  refuse(kernel(" pushforward=2", push, pull), "its pushforward takes other values");
  refuse(kernel(" pullback=1", push, pull), "its pullback takes other values");
  refuse(kernel(" pushforward=1", "(f32) { yield %t }", pull),
         "its pushforward gives other values");
  refuse(kernel(" pullback=2", push, "(f64) { yield %t }"), "its pullback gives other values");
  refuse(kernel(" pullback=9", push, pull), "its pullback is no function");
}

TEST_CASE("rules of exits") {
  const Rule rules[] = {
      {"break<1>", "leaves more loops than there are"},
      {"loop %z, %n, %one {(%i: i32)\n break<0> }", "leaves no loop"},
      {"loop %z, %n, %one {(%i: i32)\n break<2> }", "leaves more loops than there are"},
      {"loop %z, %n, %one {(%i: i32)\n continue<1> }", "leaves more loops than there are"},
      {"parallel %z, %n {(%i: i32)\n break<1> }", "leaves a parallel loop"},
      {"parallel %z, %n {(%i: i32)\n return }", "leaves a parallel loop"},
      {"return %f", "returns (f32), expected ()"},
  };
  for (const Rule& r : rules) refuse(body("recorded", std::string(r.code) + "\nyield\n"), r.says);
  const char* sound[] = {
      "parallel %z, %n {(%i: i32)\n continue<0> }",
      "parallel %z, %n {(%i: i32)\n loop %z, %n, %one {(%j: i32)\n continue<1> }\n yield }",
      "loop %z, %n, %one {(%i: i32)\n loop %z, %n, %one {(%j: i32)\n break<2> }\n yield }",
      "return\n%q = neg %f : f32",
  };
  for (const char* code : sound) {
    INFO(code);
    CHECK(verify(*parse(body("recorded", std::string(code) + "\nyield\n"))) ==
          std::vector<std::string>{});
  }
}

TEST_CASE("rules of kernels") {
  const std::string head = "quern 1\nkernel @k level=structured";
  const Rule rules[] = {
      {"", "the kernel has no body"},
      {"\nbinding scalar f32, f32 \"a\"\nbody { yield }", "a scalar has one component"},
      {"\nbinding scalar address \"a\"\nbody { yield }", "a component is no scalar"},
      {"\nbinding field rank=1 f32:b1 \"a\"\nbody { yield }", "no encoding by that type"},
      {"\nbinding field rank=1 f32:slot \"a\"\nbody { yield }", "no encoding by that type"},
      {"\nbinding field rank=9 f32 \"a\"\nbody { yield }", "at most 8 axes"},
      {"\nbinding field rank=1 \"a\"\nbody { yield }", "a field has components"},
      {"\nbinding frame \"a\"\nbinding frame \"b\"\nbody { yield }", "several frame bindings"},
      {" results(f32)\nbody { yield }", "yields (), the kernel wants (f32)"},
      {"\nbody { yield }\ntask serial { yield }", "tasks or a schedule before it is split"},
      {"\nbody {(%a: f32)\n yield }", "the arguments are not what the kernel wants"},
      {"\nfunction @f() -> (f32) { yield }\nbody { yield }", "yields (), the function wants (f32)"},
      {"\nfunction @f() { call<0>\n yield }\nbody { yield }", "function f calls itself"},
      {"\nfunction @f() { call<1>\n yield }\nfunction @g() { call<0>\n yield }\nbody { yield }",
       "calls itself"},
      {"\nfunction @f(%n: i32) { parallel %n, %n {(%i: i32)\n yield }\nyield }\nbody { yield }",
       "stands in a function"},
  };
  for (const Rule& r : rules) refuse(head + r.code + "\n", r.says);
}

TEST_CASE("rules of split kernels") {
  const std::string head = R"(quern 1
kernel @k level=split results(f32)
binding field rank=1 f32 "x"
binding frame "frame"
frame f32, b1, i32
)";
  const std::string domain = "domain {\n%z = constant<0> : i32\nyield %z, %z\n}";
  const std::vector<std::pair<std::string, std::string>> rules = {
      {"body { yield }", "the kernel still has a body"},
      {"task serial rank=1 { yield }", "a serial or combine task has no domain and rank 0"},
      {"task serial {(%i: i32)\n yield }", "the arguments are not what the body wants"},
      {"task serial {\n%t = constant<1> : b1\n yield %t }", "yields (b1), the body wants ()"},
      {"task range rank=1 {(%i: i32)\n yield }", "a task over a domain has a domain"},
      {"task range " + domain + " {(%i: i32)\n yield }", "rank 1 to 8"},
      {"task range rank=1 over=0 " + domain + " {(%i: i32)\n yield }",
       "a field is named in place of a domain"},
      {"task range rank=1 over=1 {(%i: i32)\n yield }", "the field that it walks does not exist"},
      {"task range rank=2 over=0 {(%i: i32, %j: i32)\n yield }",
       "its rank is not that of the field that it walks"},
      {"task range rank=1 over=0 {(%i: u8)\n yield }", "the indices are not of type i32 or i64"},
      {"task range rank=1 over=0 {(%i: i32, %j: i32)\n yield }",
       "the arguments are not what the body wants"},
      {"task serial over=0 { yield }", "a serial or combine task has no domain and rank 0"},
      {"task range rank=1 " + domain + " { yield }", "the arguments are not what the body wants"},
      {"task range rank=1 " + domain + " {(%i: i64)\n yield }",
       "the arguments are not what the body wants"},
      {"task range rank=2 " + domain + " {(%i: i32, %j: i32)\n yield }",
       "yields (i32, i32), the domain wants (i32, i32, i32, i32)"},
      {"task range rank=1 domain {\n%z = constant<0> : u8\nyield %z, %z\n} {(%i: u8)\n yield }",
       "does not yield bounds of type i32 or i64"},
      {"task range rank=1 domain {\n%z = constant<0> : i32\n%v = load<0.0> %z : f32\nyield %z, "
       "%z\n} {(%i: i32)\n yield }",
       "a domain reads frame cells only"},
      {"task range rank=1 domain {\n%z = constant<0> : i32\nstore<1.2> %z\nyield %z, %z\n} {(%i: "
       "i32)\n yield }",
       "not allowed at this level"},
      {"task range rank=1 reduce(add f32 9) " + domain + " {(%i: i32)\n yield }",
       "a reduction's cell does not exist"},
      {"task range rank=1 reduce(add i32 0) " + domain + " {(%i: i32)\n yield }",
       "holds another type"},
      {"task range rank=1 reduce(cas f32 0) " + domain + " {(%i: i32)\n yield }",
       "by no reduction's operation"},
      {"task range rank=1 reduce(add i32 2) " + domain + " {(%i: i32)\n reduce.add<1> %i\n yield }",
       "reduction 1 of the task does not exist"},
      {"task range rank=1 reduce(add i32 2) " + domain + " {(%i: i32)\n reduce.max %i\n yield }",
       "the task's reduction is by add"},
      {"task serial {\n%c = load<1.3> : f32\nyield }", "frame cell 3 does not exist"},
      {"task serial {\n%c = load<1.2> : f32\nyield }", "moves f32, expected i32"},
      {"task serial {\n%c = constant<0> : i32\nparallel %c, %c {(%i: i32)\n yield }\nyield }",
       "not allowed at this level"},
      {"schedule { launch 0 }", "the schedule launches task 0, which does not exist"},
      {"task serial { yield }\nschedule { combine { launch 0 launch 0 } }",
       "a combine step wants launches of two combine tasks"},
      {"task serial lanes { yield }", "lanes are of an element task with reductions"},
      {"schedule { if 0 { } }", "the schedule reads cell 0, which is no b1 cell"},
      {"schedule { repeat 1 { launch 3 } { } }", "launches task 3"},
  };
  for (const auto& [code, says] : rules) refuse(head + code + "\n", says);
  refuse("quern 1\nkernel @k level=split results(f32)\nframe i32\n",
         "the frame's first cells are not the kernel's results");
  CHECK(verify(*parse(head + "task range rank=1 reduce(add i32 2) " + domain +
                      " {(%i: i32)\n reduce.add %i\n yield }\nschedule { launch 0 }")) ==
        std::vector<std::string>{});
}

TEST_CASE("rules of bounds") {
  auto kernel = [](const std::string& attributes, const std::string& hi) {
    return "quern 1\nkernel @k level=opened\nbinding frame \"frame\"\nframe i32\n"
           "task range rank=1 " +
           attributes +
           " domain {\n  %lo = constant<0> : i32\n"
           "  %n = load<0.0> : i32\n  yield %lo, %n\n} bound {\n  %lo = constant<0> : i32\n" +
           "  %n = " + hi +
           " : i32\n  yield %lo, %n\n} {\n  %lo = constant<0> : i32\n"
           "  %n = load<0.0> : i32\n  parallel %lo, %n {(%i: i32)\n    yield\n  }\n  yield\n}\n";
  };
  CHECK(verify(*parse(kernel("walk=element", "constant<7>"))) == std::vector<std::string>{});
  refuse(kernel("walk=element", "load<0.0>"), "a bound reads no frame cell");
  refuse(kernel("walk=chunked", "constant<7>"), "a bound is of an element task whose threads loop");
  refuse(kernel("walk=element once", "constant<7>"),
         "a bound is of an element task whose threads loop");
}

TEST_CASE("rules of lowered kernels") {
  const std::string head = R"(quern 1
kernel @k level=lowered
binding field rank=1 f32 "x"
)";
  const std::string domain = "domain {\n%z = constant<0> : i64\nyield %z, %z\n}";
  const std::string addresses = R"(
  %b = arg<64> : address
  %z = constant<0> : i64
  %i = constant<0> : i32
  %f = constant<0> : f32
)";
  const Rule rules[] = {
      {"%r = arg<4> : u32", "no entry of the argument block lies there"},
      {"%r = arg<4096> : u32", "no entry of the argument block lies there (104 bytes)"},
      {"%r = arg<0> : slot", "which no value has"},
      {"%r = offset %b, %i : address", "operand 1 is i32, expected i64"},
      {"%r = offset %z, %z : address", "operand 0 is i64, expected address"},
      {"%r = read<0> %z : f32", "operand 0 is i64, expected address"},
      {"%r = read<99999> %b : f32", "alias class does not exist"},
      {"%r = read<0> %b : address", "moves address, expected a scalar"},
      {"write<0> %b", "has 1 operand, expected 2"},
      {"%r = rmw.cas<0> %b, %f : f32", "has 2 operands, expected 3"},
      {"%r = rmw.bit_and<0> %b, %f : f32", "no bit_and on f32"},
      {"%r = rmw.add<0> %b, %i : f32", "operand 1 is i32, expected f32"},
      {"%r = add %b, %b : address", "does not take address"},
      {"%r = builtin.thread : i64", "not of this kind of task"},
      {"%r = builtin.iteration : i64", "of a walked loop"},
      {"%r = builtin.begin : i32", "gives (i32), expected (i64)"},
      {"%r = load<0.0> %z : f32", "not allowed at this level"},
      {"%r = extent<0.0> : i64", "not allowed at this level"},
  };
  for (const Rule& r : rules)
    refuse(head + "task range rank=1 walk=chunked " + domain + " {" + addresses + r.code +
               "\nyield }\n",
           r.says);
  refuse(head + "task range rank=1 " + domain + " { yield }\n", "is not walked");
  refuse(
      head + "task range rank=1 walk=element " + domain + " {\n%r = builtin.chunk : i64\nyield }\n",
      "not of this kind of task");
  refuse(head + "task range rank=1 walk=chunked over=0 { yield }\n", "until the task is opened");
  refuse(
      "quern 1\nkernel @k level=opened\nbinding field rank=1 f32 \"x\"\n"
      "task range rank=1 walk=chunked " +
          domain + " {\nparallel over=0 {(%i: i64)\n yield }\nyield }\n",
      "names a field, expected bounds");
  const std::string element = head + "task range rank=1 walk=element " + domain + " {" + addresses;
  refuse(element + "%r = block_reduce.bit_or %f : f32\nyield }\n", "no reduction by bit_or on f32");
  refuse(element + "%r = block_reduce.exchange %i : i32\nyield }\n",
         "no reduction by exchange on i32");
  refuse(head + "task range rank=1 walk=chunked " + domain + " {" + addresses +
             "%r = block_reduce.add %i : i32\nyield }\n",
         "stands where threads run in no blocks");
  const std::string combines = element +
                               "%t = builtin.block_thread : i64\n"
                               "%r = block_reduce.add %f : f32\nyield }\n";
  CHECK(verify(*parse(combines)) == std::vector<std::string>{});
  CHECK(print(*parse(combines)).find("block_reduce.add %") != std::string::npos);
  refuse(head + "task serial {\n%r = builtin.begin : i64\nyield }\n", "not of this kind of task");
  CHECK(verify(*parse(head + "task range rank=1 walk=element " + domain + " {" + addresses +
                      "%t = builtin.thread : i64\n%e = builtin.end : i64\nyield }\n")) ==
        std::vector<std::string>{});
  refuse(element + "%r = builtin.reciprocal : i64\nyield }\n", "not of this kind of task");
  refuse(element + "%r = builtin.rows : i64\nyield }\n", "not of this kind of task");
}

// ---- what text cannot say

namespace {
std::unique_ptr<Kernel> small() {
  return parse(
      "quern 1\nkernel @k level=structured\nfunction @f(%a: f32) { yield }\nbody {\n"
      "%0 = constant<1> : i32\n%1 = neg %0 : i32\n%2 = neg %1 : i32\nyield\n}\n");
}
bool says(const Kernel& k, const std::string& text) {
  for (const std::string& f : verify(k))
    if (f.find(text) != std::string::npos) return true;
  return false;
}
}  // namespace

TEST_CASE("an operand of another root, or defined later, is found") {
  auto k = small();
  Inst* neg = k->body->first->next;
  neg->set_operand(0, k->callees[0].body->arg(0));
  CHECK(says(*k, "operand 0 belongs to another root"));
  k = small();
  Builder b(*k);
  b.before(k->body->first);
  move(b, k->body->first->next);
  CHECK(says(*k, "`%0 = neg %1 : i32`: operand 0 is not defined where it is used"));
}

TEST_CASE("damaged links and use lists are found") {
  auto k = small();
  k->body->first->next->prev = nullptr;
  CHECK(says(*k, "is not linked to its neighbours or region"));
  k = small();
  k->body->last = k->body->first;
  CHECK(says(*k, "a region does not know its last instruction"));
  k = small();
  k->body->first->results[0].uses = nullptr;
  CHECK(says(*k, "operand 0 is not in its value's use list"));
  k = small();
  k->body->first->next->operands[0].value = nullptr;
  CHECK(says(*k, "operand 0 is missing"));
  k = small();
  k->body->last->prev->unlink();  // still uses its operand
  CHECK(says(*k, "a value's use list does not hold the uses there are"));
  k = small();
  k->body->first->imm = ~Bits(0);
  CHECK(says(*k, "has bits beyond its type"));
  k = small();
  k->body->first->next->kind = 9;
  CHECK(says(*k, "has a flag that only float arithmetic has"));
}

TEST_CASE("expect_valid names the pass and the kernel") {
  auto k = small();
  expect_valid(*k, "nothing");
  k->body->first->imm = ~Bits(0);
  try {
    expect_valid(*k, "tidy_up");
    FAIL("accepted");
  } catch (const InternalError& e) {
    const std::string text = e.what();
    CHECK(text.find("kernel 'k' is not sound after tidy_up") != std::string::npos);
    CHECK(text.find("has bits beyond its type") != std::string::npos);
  }
}

TEST_CASE("a kernel with many faults is reported in part") {
  std::string text = "quern 1\nkernel @k level=structured\nbody {\n%0 = constant<1> : i32\n";
  for (int n = 0; n < 1000; n++) text += "%a" + std::to_string(n) + " = sqrt %0 : i32\n";
  CHECK(verify(*parse(text + "yield\n}\n")).size() == 100);
}

TEST_CASE("the verifier refuses a block_reduce that threads of a block may reach apart") {
  const std::string start = R"(quern 1
kernel @k level=lowered
binding field rank=1 i32 "x"
task range rank=1 walk=element domain {
  %lo = constant<0> : i64
  %hi = constant<8> : i64
  yield %lo, %hi
} {
  %x = arg<64> : address
  %flag = arg<80> : b1
  %record = arg<16> : address
  %zero = constant<0> : i64
  %one = constant<1> : i64
  %thread = builtin.thread : i64
  %threads = builtin.threads : i64
  %end = builtin.end : i64
  %none = constant<0> : u32
  %early = lt %thread, %end : b1
)";
  auto apart = [&](const std::string& body) {
    const std::vector<std::string> all = verify(*parse(start + body + "yield\n}\n"));
    REQUIRE(all.size() <= 1);
    return all.empty() ? "" : all[0];
  };
  auto branch = [](const std::string& condition) {
    return "if " + condition + " {\n%s = block_reduce.add %thread : i64\nyield\n} {\nyield\n}\n";
  };
  CHECK(apart(branch("%flag")) == "");
  CHECK(apart(branch("%early")) ==
        "task 0: `%10 = block_reduce.add %5 : i64`: not all threads of a block come here together: "
        "they may differ in `if %9`");
  CHECK_THAT(apart(branch("%flag") + branch("%early")), contains("`if %9`"));

  // What is in memory: shared where nobody writes it, and in the error record.
  CHECK(apart("%v = read<3> %x : u32\n%c = eq %v, %none : b1\n" + branch("%c")) == "");
  CHECK_THAT(
      apart("%v = read<3> %x : u32\nwrite<3> %x, %v\n%c = eq %v, %none : b1\n" + branch("%c")),
      contains("may differ in `if %"));
  CHECK_THAT(apart("%p = offset %x, %thread : address\n%v = read<3> %p : u32\n"
                   "%c = eq %v, %none : b1\n" +
                   branch("%c")),
             contains("may differ in `if %"));
  CHECK(apart("%v = read<65537> %record : u32\n%c = eq %v, %none : b1\n" + branch("%c") +
              "%old = rmw.add<65537> %record, %none : u32\n") == "");
  CHECK_THAT(apart("%v = rmw.add<3> %x, %none : u32\n%c = eq %v, %none : b1\n" + branch("%c")),
             contains("may differ in `if %"));

  // Loops: by the number of rounds, and by what is carried.
  auto loop = [](const std::string& bounds) {
    return "loop " + bounds + ", %one {(%k: i64)\n%s = block_reduce.add %k : i64\nyield\n}\n";
  };
  CHECK(apart(loop("%zero, %end")) == "");
  CHECK_THAT(apart(loop("%thread, %end")), contains("may differ in `loop %5, %7, %4`"));
  const std::string carried = R"(
  %c = loop %zero, %end, %one, %zero : i64 {(%k: i64, %c: i64)
    %go = eq %c, %zero : b1
    if %go {
      %s = block_reduce.add %k : i64
      yield
    } {
      yield
    }
    yield )";
  CHECK(apart(carried + "%k\n}\n") == "");
  CHECK_THAT(apart(carried + "%thread\n}\n"),
             contains("may differ in `if %"));  // from round two on
  CHECK_THAT(apart(R"(
  %r = loop %zero, %thread, %one, %zero : i64 {(%k: i64, %c: i64)
    yield %k
  }
  %go = eq %r, %zero : b1
)" + branch("%go")),
             contains("may differ in `if %"));
  CHECK_THAT(apart(R"(
  %p = slot<1> : slot i64
  if %early {
    put %p, %one
    yield
  } {
    yield
  }
  %v = get %p : i64
  %go = eq %v, %zero : b1
)" + branch("%go")),
             contains("may differ in `if %"));
  auto rounds = [&](const std::string& step) {
    return apart(
        "%w = while %zero : i64 {(%c: i64)\n%go = lt %c, %end : b1\nyield %go, %c\n} "
        "{(%d: i64)\n%s = block_reduce.add %d : i64\n%e = add %d, " +
        step + " : i64\nyield %e\n}\n");
  };
  CHECK(rounds("%one") == "");
  CHECK_THAT(rounds("%thread"), contains("may differ in `%"));
}
