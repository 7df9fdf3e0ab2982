// print → parse → print is the identity, for every construct the text form has.
#include <random>

#include "quern/error.h"
#include "quern/ir/builder.h"
#include "quern/ir/text.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"

using namespace quern;
using namespace quern::ir;

namespace {

const std::string structured = R"(quern 1
kernel @all level=structured modes=checked,strict,contract results(f32, i64)
binding scalar f32 "a"
binding field rank=2 f32, i32, b1 "odd \"name\"\n" class=3 strided
binding field rank=0 f64 "zero"
site check "negative at {}" (i32)
site print "{} {}" (i32, f32)
site bounds "" (i32, i32)
function @twice(%0: f32, %1: i64) -> (f32, i64) {
  %2 = add.uncontracted %0, %0 : f32
  %3 = mul.reassociate.uncontracted %2, %0 : f32
  yield %3, %1
}
function @"operator+"() {
  yield
}
function @g(%0: f32) -> (f32) derivative=@"a rule" {
  %1 = mul %0, %0 : f32
  yield %1
}
function @h(%0: f32) -> (f32) derivative=@h {
  %1 = apply<2> %0 : f32
  yield %1
}
body {
  %0 = param<0> : f32
  %1 = extent<1.1> : i32
  %2 = constant<0> : i32
  %3 = constant<1> : i32
  %4 = constant<-5> : i64
  %5 = constant<18446744073709551615> : u64
  %6 = constant<0.1> : f32
  %7 = constant<nan:0x7fc00000> : f32
  %8 = constant<nan:0xfff8000000000001> : f64
  %9 = constant<inf> : f32
  %10 = constant<-inf> : f64
  %11 = constant<-0> : f32
  %12 = constant<1> : b1
  %13 = slot<1> : slot f32
  %14 = slot<16> : slot u8
  %15 = constant<255> : u8
  put %14, %3, %15
  %16 = get %14, %2 : u8
  put %13, %6
  parallel deterministic ordinal=7 %2, %1, %2, %3 {(%17: i32, %18: i32)
    %19 = load<1.0> %17, %18 : f32 !2
    %20 = mul %0, %19 : f32
    store<1.0> %17, %18, %20 !2
    %21 = atomic.add<1.0> %17, %18, %20 : f32
    %22 = atomic.cas<1.1> %17, %18, %2, %3 : i32
    %23 = atomic.load<1.1> %17, %18 : i32
    %24 = load<1.2> %17, %18 : b1
    reduce.max %13, %20
    check %24, %17 !0
    print %17, %20 !1
    %25 = launch_key : u64
    %26 = ordinal : u32
    %27 = iteration : u64
    %28 = call_number : u32
    %29 = random %25, %26, %27, %28 : u32
    yield
  }
  %30, %31 = if %12 : f32, f32 {
    yield %6, %7
  } {
    yield %7, %6
  }
  if.sparing %12 {
    call<1>
    yield
  } {
    yield
  }
  %32, %33 = loop %2, %1, %3, %6, %4 : f32, i64 {(%34: i32, %35: f32, %36: i64)
    %37, %38 = call<0> %35, %36 : f32, i64
    yield %37, %38
  }
  %39 = while %6 : f32 {(%40: f32)
    %41 = lt %40, %9 : b1
    yield %41, %40
  } {(%42: f32)
    %43 = fma %42, %42, %42 : f32
    yield %43
  }
  %44 = get %13 : f32
  %45 = select %12, %44, %32 : f32
  parallel over=1 deterministic block=64 ordinal=8 {(%46: i64, %47: i64)
    store<1.0> %46, %47, %45
    yield
  }
  yield %45, %33
}
)";

const std::string split = R"(quern 1
kernel @split level=split results(f32)
binding field rank=2 f32 "x" align=8
binding frame "frame"
binding field rank=1 inexact f32:f16, b1, i64:i32 "encoded"
frame f32, b1, i64, i64, i64
task serial {
  %0 = constant<1> : b1
  store<1.1> %0
  %1 = constant<0> : i64
  store<1.2> %1, %1
  %2 = load<1.3> : i64
  yield
}
task range rank=2 innermost=1 ordinal=3 grain=1024 deterministic block=8 reduce(add f32 0) reduce(min i64 2) domain {
  %0 = constant<0> : i32
  %1 = extent<0.0> : i32
  yield %0, %1, %0, %1
} {(%0: i32, %1: i32)
  %2 = load<0.0> %0, %1 : f32
  reduce.add %2
  %3 = convert %2 : i64
  reduce.min<1> %3
  yield
}
task range rank=2 ordinal=4 over=0 block=32 {(%0: i64, %1: i64)
  yield
}
schedule { launch 0 if 1 { launch 1 } repeat 1 { launch 0 } { if 1 { } launch 1 } }
)";

const std::string lowered = R"(quern 1
kernel @low level=lowered modes=contract
binding field rank=1 f32 "x" class=1
binding frame "frame"
frame f32
task range rank=1 walk=chunked domain {
  %0 = constant<0> : i64
  %1 = extent<0.0> : i64
  yield %0, %1
} {
  %0 = builtin.begin : i64
  %1 = builtin.end : i64
  %2 = constant<4> : i64
  %3 = constant<1> : i64
  %4 = arg<64> : address
  %5 = arg<32> : u32
  %6 = slot.unset<256> : slot f32
  loop.parallel_walk %0, %1, %3 {(%7: i64)
    %8 = mul %7, %2 : i64
    %9 = offset %4, %8 : address
    %10 = read<1> %9 : f32
    put %6, %7, %10
    write<1> %9, %10
    %11 = rmw.add<65537> %9, %10 : f32
    %12 = rmw.cas<1> %9, %10, %11 : f32
    yield
  }
  yield
}
task range rank=1 walk=element lanes reduce(add f32 0) domain {
  %0 = constant<0> : i64
  %1 = extent<0.0> : i64
  yield %0, %1
} {
  %0 = builtin.thread : i64
  %1 = builtin.end : i64
  %2 = builtin.threads : i64
  loop.thread_walk %0, %1, %2 {(%3: i64)
    yield
  }
  yield
}
task combine walk=element {
  %0 = builtin.first_row : i64
  %1 = builtin.rows : i64
  yield
}
schedule { launch 0 launch 1 combine { launch 2 launch 2 } }
)";

const std::string recorded = R"(quern 1
kernel @early level=recorded results(i32)
site other "a text"
body {
  %0 = constant<1> : b1
  %1 = constant<3> : i32
  loop %1, %1, %1 {(%2: i32)
    if %0 {
      break<1>
    } {
      continue<0>
    }
    yield
  }
  if %0 {
    return %1
  } {
    yield
  }
  return %1
}
)";

/// Numbers in the hand-written texts may skip; printing renumbers. From then on nothing changes.
void round_trip(const std::string& source) {
  auto first = parse(source);
  const std::string once = print(*first);
  auto second = parse(once);
  CHECK(print(*second) == once);
  CHECK(verify(*first) == std::vector<std::string>{});
  CHECK(verify(*second) == std::vector<std::string>{});
  CHECK(print(*clone(*first)) == once);
}

}  // namespace

TEST_CASE("text of every construct survives parsing and printing") {
  round_trip(structured);
  round_trip(split);
  round_trip(lowered);
  round_trip(recorded);
}

TEST_CASE("canonical text comes back as it is") {
  CHECK(print(*parse(split)) == split);
  CHECK(print(*parse(lowered)) == lowered);
  CHECK(print(*parse(recorded)) == recorded);
}

TEST_CASE("parsing fills in what the text says") {
  auto k = parse(structured);
  CHECK(k->name == "all");
  CHECK((k->modes.checked && k->modes.strict && k->modes.contract));
  REQUIRE(k->bindings.size() == 3);
  CHECK(k->bindings[1].name == "odd \"name\"\n");
  CHECK(k->bindings[1].alias_class == 3);
  CHECK_FALSE(k->bindings[1].contiguous);
  CHECK(k->bindings[1].encodings.empty());
  CHECK(k->bindings[2].contiguous);
  CHECK(k->callees[1].name == "operator+");
  CHECK(k->sites[0].values == std::vector<Type>{Type::i32});
  std::vector<Bits> constants;
  const Inst *loop = nullptr, *over = nullptr;
  for (Inst* inst : *k->body) {
    if (inst->is(Op::constant)) constants.push_back(inst->imm);
    if (inst->is(Op::parallel)) (loop ? over : loop) = inst;
  }
  CHECK(constants == std::vector<Bits>{0, 1, ~Bits(4), ~Bits(0), 0x3dcccccd, 0x7fc00000,
                                       0xfff8000000000001, 0x7f800000, 0xfff0000000000000,
                                       0x80000000, 1, 255});
  REQUIRE(loop);
  CHECK(loop->kind == 2);
  CHECK(loop->options == LoopOptions{.ordinal = 7, .deterministic = true});
  CHECK(over->options == LoopOptions{8, 1, 64, true});
  CHECK(int(over->kind) == 2);
  const Inst* load = loop->region(0)->first;
  CHECK(load->elem == Type::f32);
  CHECK(load->site == 2);
  CHECK(load->next->next->elem == Type::f32);

  auto s = parse(split);
  CHECK(s->tasks[0].options.ordinal == ~0u);
  CHECK(s->tasks[1].options.ordinal == 3);
  CHECK(s->tasks[1].options.block == 8);
  CHECK(s->tasks[1].innermost == 1);
  CHECK(s->bindings[0].alignment == 8);
  CHECK(s->schedule[2].condition.size() == 1);
  CHECK(s->schedule[2].body.size() == 2);
}

TEST_CASE("locations print when asked for and survive") {
  const std::string text = R"(quern 1
kernel @k level=structured @ "k.cpp":1
binding scalar i32 "n" @ "k.cpp":2
site check "file with \"quotes\"":9 "message"
function @f() @ "f.h":3 {
  yield @ "f.h":4
}
body {
  %0 = param<0> : i32 @ "k.cpp":5
  yield
}
)";
  auto k = parse(text);
  CHECK(print(*k, {.locations = true}) == text);
  CHECK(k->sites[0].loc.line == 9);
  CHECK(std::string(k->sites[0].loc.file) == "file with \"quotes\"");
  CHECK(k->body->first->loc.line == 5);
  const std::string plain = print(*k);
  CHECK(plain.find("k.cpp") == std::string::npos);
  CHECK(print(*parse(plain)) == plain);
}

TEST_CASE("one instruction prints with the numbers of its root") {
  auto k = parse(structured);
  const Inst* load = nullptr;
  walk(*k, [&](Inst* inst) {
    if (inst->is(Op::load) && !load) load = inst;
  });
  CHECK(print(load) == "%19 = load<1.0> %17, %18 : f32 !2");
}

TEST_CASE("every float constant survives, to the bit") {
  std::mt19937_64 random(1);
  Kernel k;
  k.level = Level::structured;
  Builder b(k);
  k.body = b.make_region();
  b.at_end(k.body);
  for (int n = 0; n < 3000; n++) {
    b.constant(Type::f32, uint32_t(random()));
    b.constant(Type::f64, random());
    b.constant(Type::i64, random());
    b.constant(Type::i8, uint8_t(random()));
  }
  for (uint32_t special : {0u, 0x80000000u, 1u, 0x807fffffu, 0x7f7fffffu, 0xff800000u, 0x7f800001u})
    b.constant(Type::f32, special);
  b.yield();
  auto copy = parse(print(k));
  const Inst* other = copy->body->first;
  for (const Inst* inst = k.body->first; inst; inst = inst->next, other = other->next) {
    REQUIRE(other);
    REQUIRE(inst->imm == other->imm);
    REQUIRE(inst->results.size() == other->results.size());
  }
}

// ---- errors

namespace {
struct Broken {
  const char* text;
  int line;
  const char* says;
};
const char* const start = "quern 1\nkernel @k level=structured\n";
}  // namespace

TEST_CASE("a parse error names the line, what was found and what was expected") {
  const Broken whole[] = {
      {"", 1, "found the end of the text, expected 'quern'"},
      {"quern 2\n", 1, "version 2 of the text form is unknown"},
      {"quern x\n", 1, "found 'x', expected the version"},
      {"quern 1\n\nkernel saxpy", 3, "found 'saxpy', expected '@'"},
      {"quern 1\nkernel @k level=high", 2, "found 'high', expected a level (recorded"},
      {"quern 1\nkernel @k modes=fast", 2, "found 'fast', expected a mode"},
      {"quern 1\nkernel @k results(f8)", 2, "found 'f8', expected a type"},
  };
  // after two good lines
  const Broken parts[] = {
      {"bindings\n", 3, "found 'bindings', expected binding, frame"},
      {"binding vector f32 \"a\"", 3, "found 'vector', expected a kind of binding (scalar field"},
      {"binding field rank=300 f32 \"a\"", 3, "found '300', expected a rank"},
      {"binding buffer rank=1 f32 \"a\" rows", 3, "found 'rows', expected 'task'"},
      {"binding buffer rank=1 f32 \"a\" task=0 many", 3,
       "found 'many', expected rows, iterations, constant, cell or copies"},
      {"binding buffer rank=1 f32 \"a\" task=0 cell", 3, "expected '='"},
      {"binding scalar f32\n", 4, "found the end of the text, expected"},
      {"binding scalar f32 \"a\n", 3, "a string does not end on its line"},
      {"binding scalar f32 \"\\q\"", 3, "unknown escape"},
      {"site warning \"x\"", 3, "found 'warning', expected a kind of site"},
      {"frame f32\nframe f32", 4, "a second frame"},
      {"body {\nyield\n}\nbody {", 6, "a second body"},
      {"body {\n  %0 = plus %1 : f32\n", 4, "found 'plus', expected an operation"},
      {"body {\n  frobnicate\n", 4, "found 'frobnicate', expected an instruction or '}'"},
      {"body {\n  yield\n", 5, "found the end of the text, expected an instruction or '}'"},
      {"body {\n  %0 = neg %1 : f32\n", 4, "%1 is not defined before its use"},
      {"body {\n  %a = call_number : u32\n  %a = call_number : u32\n", 5,
       "%a is already defined in line 4"},
      {"body {\n  %a, %b = call_number : u32\n", 4, "found 1 result types for 2 results"},
      {"body {\n  %a = constant<300> : u8\n", 4, "found '300', expected a constant of type u8"},
      {"body {\n  %a = constant<-129> : i8\n", 4, "expected a constant of type i8"},
      {"body {\n  %a = constant<-1> : u64\n", 4, "expected a constant of type u64"},
      {"body {\n  %a = constant<2> : b1\n", 4, "expected a constant of type b1"},
      {"body {\n  %a = constant<1.5> : i32\n", 4, "expected a constant of type i32"},
      {"body {\n  %a = constant<one> : f32\n", 4, "expected a constant of type f32"},
      {"body {\n  %a = constant<nan:0x0> : f32\n", 4, "expected a constant of type f32"},
      {"body {\n  %a = constant<nan> : f32\n", 4, "expected a constant of type f32"},
      {"body {\n  %a = load<1> : f32\n", 4, "found '1', expected binding.component"},
      {"body {\n  %a = load<1> : f32\n", 4, "expected binding.component"},
      {"body {\n  %a = load : f32\n", 4, "found ':', expected '<'"},
      {"body {\n  %a = atomic.sub<0.0> : f32\n", 4, "found 'sub', expected an atomic operation"},
      {"body {\n  %a = builtin.clock : i64\n", 4, "found 'clock', expected a builtin"},
      {"body {\n  %a = add.fast : f32\n", 4, "found 'fast', expected a flag of the operation"},
      {"body {\n  if {\n} {\n} {\n", 6, "a third region"},
      {"body {\n  yield !x\n", 4, "found 'x', expected a site's number"},
      {"body {\n  yield $\n", 4, "found the character '$', which starts nothing"},
      {"task parallel {", 3, "found 'parallel', expected a kind of task"},
      {"task range width=3 {", 3, "found 'width', expected an attribute of the task"},
      {"schedule { jump 3 }", 3,
       "found 'jump', expected a step or '}' (launch if repeat combine refresh reserve collect)"},
      {"schedule { launch many }", 3, "found 'many', expected a task's number"},
  };
  auto test = [](const std::string& text, const Broken& b) {
    INFO(text);
    try {
      parse(text, "file.qir");
      FAIL("parsed");
    } catch (const Error& e) {
      INFO(e.what());
      CHECK(e.loc().line == b.line);
      CHECK(std::string(e.loc().file) == "file.qir");
      CHECK(e.message().find(b.says) != std::string::npos);
    }
  };
  for (const Broken& b : whole) test(b.text, b);
  for (const Broken& b : parts) test(std::string(start) + b.text, b);
}

TEST_CASE("deep nesting is an error, not a crash") {
  std::string text = start;
  text += "body {\n";
  for (int k = 0; k < 100000; k++) text += "if {\n";
  CHECK_THROWS_AS(parse(text), Error);
  text = start;
  text += "schedule {";
  for (int k = 0; k < 100000; k++) text += "if 0 {";
  CHECK_THROWS_AS(parse(text), Error);
}

TEST_CASE("damaged text parses, or is an error: never anything else") {
  std::mt19937_64 random(2);
  const std::string alphabet = "%@{}()<>[],:=.!\"\\; \n0123456789-abcdefxyz_";
  for (const std::string* source : {&structured, &split, &lowered, &recorded}) {
    for (int n = 0; n < 3000; n++) {
      std::string text = *source;
      for (uint64_t edits = 1 + random() % 4; edits > 0; edits--) {
        const size_t at = random() % text.size();
        switch (random() % 4) {
          case 0: text[at] = alphabet[random() % alphabet.size()]; break;
          case 1: text.erase(at, 1 + random() % 8); break;
          case 2: text.insert(at, 1, alphabet[random() % alphabet.size()]); break;
          default: {
            const std::string piece = text.substr(random() % text.size(), random() % 30);
            text.insert(at, piece);
          }
        }
        if (text.empty()) text = "q";
      }
      try {
        auto k = parse(text);
        verify(*k);
        const std::string once = print(*k);
        auto again = parse(once);
        if (print(*again) != once) {
          INFO(text);
          CHECK(print(*again) == once);
        }
      } catch (const Error&) {
        SUCCEED();
      }
    }
  }
}

TEST_CASE("how a field lies in memory prints and parses") {
  const std::string text = R"(quern 1
kernel @k level=lowered
binding field rank=1 f32, u8 "a" class=1 based step=8 offsets(0, 4)
binding field rank=2 f32, f64 "b" class=2 strided group=6 bytes=72 offsets(0, 24) shifted blocks(2:6, 4:12) blocks(3:2, 2:1)
binding field rank=2 f32 "c" class=3 fast=1
binding buffer rank=1 f32, b1 "d" task=2 rows class=65542 align=8 step=16 offsets(0, 8)
binding buffer rank=1 i64 "e" task=0 iterations class=65543 align=8 step=8
binding buffer rank=1 i64 "f" task=0 constant=18446744073709551615 class=65544 align=8 step=8
binding buffer rank=1 i64 "g" task=1 cell=7 kept class=65545 align=8 step=8
)";
  auto k = parse(text);
  CHECK(print(*k) == text);
  CHECK(k->bindings[3].size == BufferSize{BufferSize::rows, 2, 0});
  CHECK(k->bindings[6].size == BufferSize{BufferSize::cell, 1, 7});
  CHECK(k->bindings[6].is_kept);
  CHECK(print(*clone(*k)) == text);
  const Binding &a = k->bindings[0], &b = k->bindings[1];
  CHECK_FALSE(a.zero_based);
  CHECK(a.layout.step == 8);
  CHECK(a.layout.offsets == std::vector<int32_t>{0, 4});
  CHECK(b.layout.levels.size() == 2);
  CHECK(b.layout.levels[0].extent[1] == 4);
  CHECK(b.layout.levels[0].stride[1] == 12);
  CHECK(b.layout.group_bytes == 72);
  CHECK(b.layout.shifted);
  CHECK(k->bindings[2].layout.fast == 1);
  auto wrong = parse(
      "quern 1\nkernel @k level=split\nbinding field rank=1 f32 \"x\" fast=1 "
      "offsets(0, 4) blocks(0:1)\n");
  const std::vector<std::string> found = verify(*wrong);
  REQUIRE(found.size() == 3);
  CHECK(found[0].find("another number of offsets") != std::string::npos);
  CHECK(found[1].find("fast axis does not exist") != std::string::npos);
  CHECK(found[2].find("blocks of no element") != std::string::npos);
}
