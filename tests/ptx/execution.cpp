// Warps, blocks and memory: what belongs together, what is checked, and in which order.
#include "tests/ptx/support.h"

using namespace quern;
using ptx::Fault;
using ptx::Schedule;
using test::entry;
using test::fault;
using test::head;
using test::Memory;
using test::Program;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<Schedule> schedules() {
  std::vector<Schedule> all;
  for (auto order : {Schedule::ascending, Schedule::descending, Schedule::shuffled})
    for (bool switches : {false, true})
      for (unsigned resident : {1u, 4u}) all.push_back({order, order, resident, switches, 7});
  return all;
}

}  // namespace

TEST_CASE("threads that part meet again, and shuffles wait for all they name") {
  // Thread t turns t times, then all add up what they have by shuffles.
  Program p(entry(head + "mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
                         "$turn: setp.ge.u32 %p1, %r1, %t; @%p1 bra $out;\n"
                         "add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra $turn;\n"
                         "$out: shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1; add.u32 %r2, %r2, %r3;\n"
                         "shfl.sync.bfly.b32 %r3, %r2, 8, 31, -1; add.u32 %r2, %r2, %r3;\n"
                         "shfl.sync.bfly.b32 %r3, %r2, 4, 31, -1; add.u32 %r2, %r2, %r3;\n"
                         "shfl.sync.bfly.b32 %r3, %r2, 2, 31, -1; add.u32 %r2, %r2, %r3;\n"
                         "shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; add.u32 %r2, %r2, %r3;\n"
                         "st.global.u32 [%at], %r2;"));
  uint32_t want = 0;
  for (uint32_t t = 0; t < 32; t++) want += t * (t - 1) / 2;
  for (const Schedule& s : schedules()) {
    Memory memory;
    const uint64_t at = memory.put(std::vector<uint32_t>(64));
    p.run(memory, {at}, 2, 32, s);
    CHECK(memory.get<uint32_t>(at) == std::vector<uint32_t>(64, want));
  }
}

TEST_CASE("shuffles read the lanes that the manual names") {
  const struct {
    const char* code;
    uint32_t (*want)(uint32_t lane);
  } cases[] = {
      {"shfl.sync.up.b32 %r2, %t, 3, 0, -1;", [](uint32_t l) { return l < 3 ? l : l - 3; }},
      {"shfl.sync.down.b32 %r2, %t, 3, 31, -1;", [](uint32_t l) { return l > 28 ? l : l + 3; }},
      {"shfl.sync.bfly.b32 %r2, %t, 5, 31, -1;", [](uint32_t l) { return l ^ 5; }},
      {"shfl.sync.idx.b32 %r2, %t, 9, 31, -1;", [](uint32_t) { return 9u; }},
      // parts of 8 lanes: the mask 0b11000 in bits 8 to 12, the clamp below
      {"shfl.sync.idx.b32 %r2, %t, 2, 0x1807, -1;", [](uint32_t l) { return (l & 24) + 2; }},
      {"shfl.sync.down.b32 %r2, %t, 6, 0x1807, -1;",
       [](uint32_t l) { return l % 8 < 2 ? l + 6 : l; }},
      {"vote.sync.ballot.b32 %r2, %p1, -1;", [](uint32_t) { return 0x55555555u; }},
      {"mov.u64 %y1, 7; match.all.sync.b64 %r2|%p2, %y1, -1;", [](uint32_t) { return ~0u; }},
      {"match.all.sync.b32 %r2, %t, -1;", [](uint32_t) { return 0u; }},
      {"mov.u64 %y1, 7; match.all.sync.b64 %r2|%p2, %y1, -1; selp.b32 %r2, 5, 6, %p2;",
       [](uint32_t) { return 5u; }},
      {"match.all.sync.b32 %r2|%p2, %t, -1; selp.b32 %r2, 5, 6, %p2;", [](uint32_t) { return 6u; }},
  };
  for (auto [code, want] : cases) {
    INFO(code);
    Memory memory;
    const uint64_t at = memory.put(std::vector<uint32_t>(32));
    Program(entry(head + "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;\n" + code +
                  " st.global.u32 [%at], %r2;"))
        .run(memory, {at});
    std::vector<uint32_t> expected;
    for (uint32_t l = 0; l < 32; l++) expected.push_back(want(l));
    CHECK(memory.get<uint32_t>(at) == expected);
  }
}

TEST_CASE("a block's threads meet at barriers and share memory") {
  // Each reads what the opposite thread wrote.
  Program p(entry(".shared .align 4 .b8 words[1024];\n" + head +
                  "mov.u64 %y1, words; mul.wide.u32 %y2, %t, 4; add.s64 %y2, %y1, %y2;\n"
                  "st.shared.u32 [%y2], %i; bar.sync 0;\n"
                  "sub.u32 %r1, 255, %t; mul.wide.u32 %y3, %r1, 4; add.s64 %y3, %y1, %y3;\n"
                  "ld.shared.u32 %r2, [%y3]; st.global.u32 [%at], %r2;"));
  for (const Schedule& s : schedules()) {
    Memory memory;
    const uint64_t at = memory.put(std::vector<uint32_t>(512));
    p.run(memory, {at}, 2, 256, s);
    const std::vector<uint32_t> got = memory.get<uint32_t>(at);
    int wrong = 0;
    for (uint32_t k = 0; k < 512; k++) wrong += got[k] != k / 256 * 256 + 255 - k % 256;
    CHECK(wrong == 0);
  }
}

TEST_CASE("without the barrier some order shows it") {
  Program p(entry(".shared .align 4 .b8 words[1024];\n" + head +
                  "mov.u64 %y1, words; mul.wide.u32 %y2, %t, 4; add.s64 %y2, %y1, %y2;\n"
                  "st.shared.u32 [%y2], %i;\n"
                  "sub.u32 %r1, 255, %t; mul.wide.u32 %y3, %r1, 4; add.s64 %y3, %y1, %y3;\n"
                  "ld.shared.u32 %r2, [%y3]; st.global.u32 [%at], %r2;"));
  int differ = 0;
  for (const Schedule& s : schedules()) {
    Memory memory;
    const uint64_t at = memory.put(std::vector<uint32_t>(256));
    p.run(memory, {at}, 1, 256, s);
    const std::vector<uint32_t> got = memory.get<uint32_t>(at);
    for (uint32_t k = 0; k < 256; k++) differ += got[k] != 255 - k;
  }
  CHECK(differ > 0);
}

TEST_CASE("atomic operations lose nothing; sums of f32 in global memory are without subnormals") {
  Program p(entry(head + "atom.global.add.u32 %r1, [%x], 1; red.global.max.s32 [%x+4], %i;\n"
                         "atom.global.add.f32 %f1, [%x+8], 0f000116C2;\n"  // 1e-40
                         "atom.global.cas.b32 %r2, [%x+12], 0, %i;\n"
                         "atom.global.inc.u32 %r3, [%x+16], 9;"));
  for (const Schedule& s : schedules()) {
    Memory memory;
    const uint64_t at = memory.put(std::vector<uint32_t>(5));
    p.run(memory, {at}, 5, 64, s);
    const auto got = memory.get<uint32_t>(at);
    CHECK(got[0] == 320);
    CHECK(got[1] == 319);
    CHECK(got[2] == 0);
    CHECK(got[4] == 320 % 10);
  }
}

TEST_CASE(
    "an access outside, misaligned or to what is freed ends the launch with kernel and line") {
  const struct {
    const char *code, *why;
    int number;
  } wrong[] = {
      {"ld.global.u32 %r1, [%x+128];", "4 bytes at 0x800000000080 are not allocated",
       Fault::illegal_address},
      {"st.global.u32 [%x+-4], %r1;", "are not allocated", Fault::illegal_address},
      {"ld.global.u32 %r1, [%x+2];", "is not a multiple of 4", Fault::misaligned},
      {"ld.global.v2.u32 {%r1, %r2}, [%x+4];", "is not a multiple of 8", Fault::misaligned},
      {"ld.shared.u32 %r1, [0];", "of a memory of 0 bytes", Fault::illegal_address},
      {"ld.param.u32 %r1, [p0+8];", "of a memory of 8 bytes", Fault::illegal_address},
      {"mov.u32 %r1, 0; div.u32 %r2, %t, %r1;", "a division by zero", Fault::launch_failed},
      {"setp.lt.u32 %p1, %t, 7; @%p1 bra $in; ret; $in: bar.sync 0;", "the others are gone",
       Fault::launch_failed},
      {"setp.lt.u32 %p1, %t, 7; @%p1 bra $in; ret; $in: shfl.sync.idx.b32 %r1, %t, 0, 31, -1;",
       "names threads that are gone", Fault::launch_failed},
      {"shfl.sync.idx.b32 %r1, %t, 9, 31, 1; ", "does not name itself", Fault::launch_failed},
      {"trap;", "a trap", Fault::launch_failed},
      {"$more: bra $more;", "the launch does not end", Fault::timeout},
  };
  for (auto [code, why, number] : wrong) {
    Memory memory;
    const uint64_t at = memory.put(std::vector<uint32_t>(32));
    Program p(entry(head + code));
    int n = 0;
    Schedule schedule;
    schedule.most_steps = 100'000;
    const std::string said = fault([&] { p.run(memory, {at}, 1, 32, schedule); }, &n);
    INFO(code << "\n" << said);
    CHECK(has(said, why));
    CHECK(has(said, "kernel k"));
    CHECK(n == number);
  }
  Memory memory;
  const uint64_t at = memory.put(std::vector<uint32_t>(32));
  memory.release(at);
  Program p(entry(head + "st.global.u32 [%at], %t;"));
  CHECK(has(fault([&] { p.run(memory, {at}); }), "PTX line 9, st.global.u32 [%at], %t"));
}

TEST_CASE("generic addresses reach local, shared and global memory") {
  Program p(entry(
      ".local .align 8 .b8 own[16]; .shared .align 4 .b8 common[4];\n" + head +
      "mov.u64 %y1, own; cvta.local.u64 %y2, %y1; st.u32 [%y2+4], %i;\n"
      "ld.local.u32 %r1, [%y1+4];\n"
      "mov.u64 %y3, common; cvta.shared.u64 %y4, %y3; st.u32 [%y4], 5; ld.shared.u32 %r2, [%y3];\n"
      "cvta.to.shared.u64 %y5, %y4; ld.shared.u32 %r3, [%y5];\n"
      "add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.u32 [%at], %r1;"));
  Memory memory;
  const uint64_t at = memory.put(std::vector<uint32_t>(32));
  p.run(memory, {at});
  const auto got = memory.get<uint32_t>(at);
  for (uint32_t k = 0; k < 32; k++) CHECK(got[k] == k + 10);
}

TEST_CASE("a race is found in every order; what barriers and atomic operations order is none") {
  const std::string words = ".shared .align 4 .b8 words[1024];\n";
  const std::string own = "mov.u64 %y1, words; mul.wide.u32 %y2, %t, 4; add.s64 %y2, %y1, %y2;\n";
  const struct {
    std::string code;
    const char* why;  ///< "" where nothing is wrong
  } cases[] = {
      {"st.global.u32 [%at], %i; ld.global.u32 %r1, [%at];", ""},
      {"st.global.u32 [%x], %i;", "a race: writes what thread"},
      {"ld.global.u32 %r1, [%x];", ""},
      {"ld.global.u32 %r1, [%x]; setp.eq.u32 %p1, %i, 40; @%p1 st.global.u32 [%x], %i;", "a race:"},
      {"red.global.add.u32 [%x], 1;", ""},
      {"red.global.add.u32 [%x], 1; ld.volatile.global.u32 %r1, [%x];", ""},
      {"red.global.add.u32 [%x], 1; ld.global.u32 %r1, [%x];", ""},
      {"red.global.add.u32 [%x], 1; st.global.u32 [%x], %r1;", "a race:"},
      {"st.volatile.global.u32 [%x], %i; ld.global.u32 %r1, [%x];", "a race:"},
      {"cvt.u64.u32 %y1, %i; add.s64 %y1, %x, %y1; st.global.u8 [%y1], %r1;", ""},
      {"ld.global.nc.u32 %r1, [%at]; st.global.u32 [%at], %r1;", "reads by ld.global.nc"},
      {words + own + "st.shared.u32 [%y2], %i; bar.sync 0; ld.shared.u32 %r1, [%y1+12];", ""},
      {words + own + "st.shared.u32 [%y2], %i; ld.shared.u32 %r1, [%y1+12];", "a race:"},
      {words + own +
           "ld.shared.u32 %r1, [%y1]; bar.sync 0; setp.eq.u32 %p1, %t, 9;"
           "@%p1 st.shared.u32 [%y1], %i; bar.sync 0; ld.shared.u32 %r1, [%y1];",
       ""},
  };
  for (const auto& [code, why] : cases) {
    Program p(entry(head + code));
    for (Schedule s : schedules()) {
      s.watched = true;
      Memory memory;
      const uint64_t at = memory.put(std::vector<uint32_t>(128));
      const std::string said = fault([&] { p.run(memory, {at}, 2, 64, s); });
      INFO(code << "\n" << said);
      CHECK(said.empty() == (*why == '\0'));
      CHECK(has(said, why));
    }
  }
}
