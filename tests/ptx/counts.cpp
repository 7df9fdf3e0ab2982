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
