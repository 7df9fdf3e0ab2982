// What kernels do, counted: each number follows from the PTX by hand.
#include "tests/ptx/support.h"

using namespace quern;
using ptx::Class;
using ptx::Counts;
using test::entry;
using test::head;
using test::Memory;
using test::Program;

namespace {

/// Of a block of one warp, %x leads to 4 KB.
Counts counts_of(const std::string& code, const ptx::Schedule& schedule = {}) {
  Memory memory;
  const uint64_t at = memory.put(std::vector<uint32_t>(32 * 32));
  Counts c;
  Program(entry(".shared .align 16 .b8 words[4096];\n" + head + code))
      .run(memory, {at}, 1, 32, schedule, &c);
  return c;
}
uint64_t of(Class kind, const Counts& c) { return c.instructions[size_t(kind)]; }

}  // namespace

TEST_CASE("counts: sectors, bank conflicts, collisions and active lanes") {
  Counts c = counts_of("ld.global.u32 %r1, [%at];");
  CHECK(c.requests == 1);
  CHECK(c.sectors == 4);
  CHECK(c.ideal_sectors == 4);
  c = counts_of("mul.wide.u32 %y1, %t, 128; add.s64 %y1, %x, %y1; ld.global.u32 %r1, [%y1];");
  CHECK(c.sectors == 32);
  CHECK(c.ideal_sectors == 4);
  c = counts_of("ld.global.u32 %r1, [%x];");
  CHECK(c.sectors == 1);
  CHECK(c.ideal_sectors == 1);
  c = counts_of(
      "mul.wide.u32 %y1, %t, 128; mov.u64 %y2, words; add.s64 %y1, %y1, %y2; ld.shared.u32 %r1, "
      "[%y1];");
  CHECK(c.shared_requests == 1);
  CHECK(c.shared_passes == 32);
  c = counts_of(
      "mul.wide.u32 %y1, %t, 4; mov.u64 %y2, words; add.s64 %y1, %y1, %y2; ld.shared.u32 %r1, "
      "[%y1];");
  CHECK(c.shared_passes == 1);
  CHECK(c.ideal_shared_passes == 1);
  // 16 bytes a lane: side by side 4 words for each bank; 256 bytes apart 16 for each of 4 banks,
  // which would fill 2 passes.
  const std::string four = "add.s64 %y1, %y1, %y2; ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%y1];";
  c = counts_of("mul.wide.u32 %y1, %t, 16; mov.u64 %y2, words; " + four);
  CHECK(c.shared_requests == 1);
  CHECK(c.shared_passes == 4);
  CHECK(c.ideal_shared_passes == 4);
  c = counts_of("and.b32 %r1, %t, 15; mul.wide.u32 %y1, %r1, 256; mov.u64 %y2, words; " + four);
  CHECK(c.shared_passes == 16);
  CHECK(c.ideal_shared_passes == 2);
  c = counts_of("mov.u64 %y1, 0; mov.u64 %y2, words; " + four);
  CHECK(c.shared_passes == 1);
  // Generic addresses are counted where they lie: the even lanes' in global, the others' in shared
  // memory.
  c = counts_of(
      "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; mov.u64 %y2, words; cvta.shared.u64 %y2, %y2;\n"
      "mul.wide.u32 %y1, %t, 4; add.s64 %y2, %y2, %y1; selp.b64 %y3, %at, %y2, %p1;\n"
      "ld.u32 %r2, [%y3]; st.u32 [%y3], %r2; atom.add.u32 %r2, [%y3], 1;");
  CHECK(c.requests == 3);
  CHECK(c.sectors == 12);
  CHECK(c.ideal_sectors == 6);
  CHECK(c.shared_requests == 3);
  CHECK(c.shared_passes == 3);
  c = counts_of(
      "and.b32 %r1, %t, 3; mul.wide.u32 %y1, %r1, 4; add.s64 %y1, %x, %y1; red.global.add.u32 "
      "[%y1], 1;");
  CHECK(c.atomics == 32);
  CHECK(c.colliding_atomics == 28);
  c = counts_of("setp.lt.u32 %p1, %t, 5; @%p1 add.f32 %f1, %f1, %f1;");
  CHECK(of(Class::floating, c) == 1);
  CHECK(c.lanes[size_t(Class::floating)] == 5);
}

TEST_CASE("threads that part meet where hardware lets them: what lies behind is counted once") {
  const std::string store = "st.global.u32 [%at], %r2;";
  const struct {
    const char* what;
    std::string code;
    uint64_t floats, sectors;
  } cases[] = {
      {"two ways",
       "setp.lt.u32 %p1, %t, 9; @%p1 bra $less; add.f32 %f1, %f1, %f1; bra $join;\n"
       "$less: add.f32 %f1, %f1, %f1; add.f32 %f1, %f1, %f1; $join: " +
           store,
       3, 4},
      {"a loop of t turns, 31 at most",
       "mov.u32 %r1, 0; $turn: setp.ge.u32 %p1, %r1, %t; @%p1 bra $out; add.f32 %f1, %f1, %f1;\n"
       "add.u32 %r1, %r1, 1; bra $turn; $out: " +
           store,
       31, 4},
      {"the same, laid out behind its exit",
       "mov.u32 %r1, 0; bra $turn; $out: " + store +
           "ret; $turn: setp.ge.u32 %p1, %r1, %t;\n"
           "@%p1 bra $out; add.f32 %f1, %f1, %f1; add.u32 %r1, %r1, 1; bra $turn;",
       31, 4},
      {"two ways in each of 40 turns, laid out behind the join",
       "mov.u32 %r1, 0; and.b32 %r3, %t, 1; bra $turn; $join: add.f32 %f1, %f1, %f1;\n"
       "add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 40; @%p1 bra $out; $turn: setp.eq.u32 %p2, "
       "%r3, 0;\n@%p2 bra $even; add.u32 %r2, %r2, 1; bra $join; $even: add.u32 %r2, %r2, 2;\n"
       "bra $join; $out: " +
           store,
       40, 4},
      {"turns that some threads cut short: 8 turns, of which 4 without the sum for the odd ones",
       "mov.u32 %r1, 0; $turn: add.u32 %r1, %r1, 1; and.b32 %r3, %r1, %t; and.b32 %r3, %r3, 1;\n"
       "setp.eq.u32 %p1, %r1, 9; @%p1 bra $out; setp.eq.u32 %p2, %r3, 1; @%p2 bra $turn;\n"
       "add.f32 %f1, %f1, %f1; bra $turn; $out: " +
           store,
       8, 4},
      {"a loop in a loop: 3 times t turns",
       "mov.u32 %r4, 0; $outer: mov.u32 %r1, 0; $turn: setp.ge.u32 %p1, %r1, %t; @%p1 bra $next;\n"
       "add.u32 %r1, %r1, 1; bra $turn; $next: add.f32 %f1, %f1, %f1; add.u32 %r4, %r4, 1;\n"
       "setp.lt.u32 %p2, %r4, 3; @%p2 bra $outer; " +
           store,
       3, 4},
      {"some threads end in the loop",
       "mov.u32 %r1, 0; $turn: setp.ge.u32 %p1, %r1, %t; @%p1 ret; add.f32 %f1, %f1, %f1;\n"
       "add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 20; @%p2 bra $turn; " +
           store,
       20, 2},  // of threads 20 to 31
  };
  for (const auto& [what, code, floats, sectors] : cases) {
    INFO(what);
    const Counts c = counts_of(code);
    CHECK(of(Class::floating, c) == floats);
    CHECK(of(Class::store, c) == 1);
    CHECK(c.sectors == sectors);
  }
}

TEST_CASE("what waits for the other threads is counted once, when they are there") {
  // The odd threads come to the shuffle by a way that is laid out behind it, and might have ended.
  const Counts c = counts_of(
      "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; @%p1 bra $odd;\n"
      "$all: shfl.sync.idx.b32 %r2, %t, 0, 31, -1; vote.sync.any.pred %p2, %p1, -1;\n"
      "bar.warp.sync -1; ret;\n"
      "$odd: setp.eq.u32 %p3, %t, 99; @%p3 ret; bra $all;");
  CHECK(of(Class::shuffle, c) == 2);
  CHECK(c.lanes[size_t(Class::shuffle)] == 64);
  CHECK(of(Class::barrier, c) == 1);
}

TEST_CASE("threads that wait for others of their warp come to an end") {
  // A lock that each takes once. Who has it waits at the loop's end for those who spin.
  Program p(entry(head +
                  "$spin: atom.global.cas.b32 %r1, [%x], 0, 1; setp.ne.u32 %p1, %r1, 0;\n"
                  "@%p1 bra $spin; ld.volatile.global.u32 %r2, [%x+4]; add.u32 %r2, %r2, 1;\n"
                  "st.volatile.global.u32 [%x+4], %r2; atom.global.exch.b32 %r1, [%x], 0;"));
  for (const bool switches : {false, true}) {
    Memory memory;
    const uint64_t at = memory.put(std::vector<uint32_t>(2));
    ptx::Schedule schedule;
    schedule.switches = switches;
    schedule.most_steps = 100'000'000;
    p.run(memory, {at}, 1, 32, schedule);
    CHECK(memory.get<uint32_t>(at)[1] == 32);
  }
}

TEST_CASE("classes: parameters are moves, exact quotients and roots are special") {
  const Counts c = counts_of(
      "div.rn.f32 %f1, %f1, %f2; sqrt.rn.f32 %f2, %f1; rcp.rn.f32 %f3, %f1; div.full.f32 %f4, "
      "%f1, %f2;\nrsqrt.approx.f32 %f5, %f1; ld.param.u64 %y1, [p0]; fma.rn.f32 %f1, %f1, %f2, "
      "%f3;");
  CHECK(of(Class::special, c) == 5);
  CHECK(of(Class::floating, c) == 1);
  CHECK(of(Class::load, c) == 0);
  CHECK(of(Class::move, c) == 5);  // two of parameters, three of special registers
}

TEST_CASE("what ends a launch is not counted") {
  const std::string misaligned =
      "mul.wide.u32 %y1, %t, 16; mov.u64 %y2, words; add.s64 %y1, %y1, %y2;\n"
      "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%y1+2];";
  Memory memory;
  const uint64_t at = memory.put(std::vector<uint32_t>(32));
  Counts c;
  Program p(entry(".shared .align 16 .b8 words[4096];\n" + head + misaligned));
  CHECK_THAT(test::fault([&] { p.run(memory, {at}, 1, 32, {}, &c); }),
             contains("is not a multiple of 16"));
  CHECK(c.shared_requests == 0);
}
