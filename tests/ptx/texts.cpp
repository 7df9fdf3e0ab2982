// What is refused, with its line.
#include "tests/ptx/support.h"

using namespace quern;
using test::entry;
using test::refusal;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("a text that the manual does not have is refused with its line") {
  const std::string registers =
      ".reg .b32 %r<4>; .reg .b64 %x<4>; .reg .f32 %f<4>; .reg .pred %p<2>;\n";
  const struct {
    const char *code, *why;
  } wrong[] = {
      {"frobnicate.b32 %r1, %r2;", "an unknown instruction"},
      {"add.s32 %r1, %r2, %x1;", "is no source of s32"},
      {"add.s32 %x1, %r2, %r3;", "is no register for s32"},
      {"add.s32 %r1, %f2, %r3;", "is no source of s32"},
      {"add.f32 %f1, %f2, 1;", "an integer among floats"},
      {"add.s32 %r1, %r2, 0f3f800000;", "a float among integers"},
      {"add.s32 %r1, %r2;", "2 operands instead of 3"},
      {"add.s32.rn %r1, %r2, %r3;", "is not known"},
      {"fma.f32 %f1, %f2, %f3, %f1;", "no rounding mode"},
      {"cvt.f32.s32 %f1, %r1;", "no rounding mode"},
      {"cvt.s32.f32 %r1, %f1;", "no rounding to an integer"},
      {"cvt.rn.s64.s32 %x1, %r1;", "a rounding mode without need"},
      {"mov.u32 %r1, %r9;", "is no source of u32"},
      {"bra $nowhere;", "there is no label"},
      {"@%r1 bra $nowhere;", "is no predicate"},
      {"setp.lt.b32 %p1, %r1, %r2;", "bits have no order"},
      {"ld.global.f32 %r1, [%r2];", "is no source of b64"},
      {"ld.shared.nc.u32 %r1, [%x1];", "nc is of global memory"},
      {"st.global.u32 %r1, [%x1];", "no address"},
      {"atom.global.add.f16 %r1, [%x1], %r2;", "is no type of"},
      {"shfl.down.b32 %r1, %r2, 1, 31;", "only sync is known"},
      {"add.s32 %r1, %r2, 4294967296;", "a number that does not fit"},
      {"ld.global.v4.u64 %x1, [%x2];", "more than 16 bytes"},
      {".reg .b32 %r1;", "a second '%r1'"},
  };
  for (auto [code, why] : wrong) {
    const std::string said = refusal(entry(registers + code));
    INFO(code << "\n" << said);
    CHECK(has(said, why));
    CHECK(has(said, "line 7:"));
  }
  CHECK(has(refusal(".version 7.8\n.target sm_80\n.address_size 32\n"),
            "line 3: addresses have 64 bits"));
  CHECK(has(refusal(entry(registers + "$a:\nmov.u32 %r1, 0;\n$a:\n")), "line 9: a second label"));
}

TEST_CASE("names of an inner block hide those outside, and functions are called") {
  test::Memory memory;
  const uint64_t at = memory.put(std::vector<uint32_t>{20, 0, 0});
  const std::string twice =
      ".func (.param .b32 result) twice(.param .b32 v)\n{\n.reg .b32 %r<3>; .reg .pred %p;\n"
      "ld.param.u32 %r1, [v]; setp.lt.u32 %p, %r1, 100; @%p bra $small;\n"
      "st.param.b32 [result+0], 7; ret;\n$small: add.u32 %r2, %r1, %r1;\n"
      "st.param.b32 [result+0], %r2; ret;\n}\n";
  auto call = [](const std::string& from, const std::string& to) {
    return "{ .param .b32 param0; st.param.b32 [param0+0], " + from +
           "; .param .b32 retval0; call.uni (retval0), twice, (param0);"
           "ld.param.b32 " +
           to + ", [retval0+0]; }\n";
  };
  test::Program p(
      entry(".reg .b64 %x; .reg .b32 %r1, %r2; ld.param.u64 %x, [p0];\n"
            "ld.global.u32 %r1, [%x]; { .reg .b32 %r1; mov.u32 %r1, 5; }\n" +
                call("%r1", "%r2") + "st.global.u32 [%x+4], %r2;\n" + "add.u32 %r2, %r2, 100;\n" +
                call("%r2", "%r2") + "st.global.u32 [%x+8], %r2;\n",
            1, twice));
  p.run(memory, {at}, 1, 1);
  CHECK(memory.get<uint32_t>(at) == std::vector<uint32_t>{20, 40, 7});
}
