// One instruction on one set of values. Expected values follow from the definitions in the PTX ISA
// manual, worked out by hand or by the host's exact integers.
#include <bit>
#include <cmath>
#include <limits>

#include "tests/ptx/support.h"

using namespace quern;
using test::Memory;
using test::Program;

namespace {

uint64_t f(float v) { return std::bit_cast<uint32_t>(v); }
uint64_t d(double v) { return std::bit_cast<uint64_t>(v); }
constexpr uint64_t nan32 = 0x7fffffff, inf32 = 0x7f800000;

struct Case {
  const char*
      code;  ///< makes %d0 of %a0, %b0 and %c0: r (32 bits), x (64), h (16), f and g are floats
  uint64_t a, b, c, want;
};

/// All registers that a case may use, filled from memory.
uint64_t result_of(const Case& c) {
  const std::string text = test::entry(
      ".reg .b64 %p; .reg .b64 %xa, %xb, %xc, %xd; .reg .b32 %ra, %rb, %rc, %rd;"
      ".reg .b16 %ha, %hb, %hc, %hd; .reg .f32 %fa, %fb, %fc, %fd; .reg .f64 %ga, %gb, %gc, %gd;"
      ".reg .pred %q, %t;\n"
      "ld.param.u64 %p, [p0];\n"
      "ld.global.b64 %xa, [%p]; ld.global.b64 %xb, [%p+8]; ld.global.b64 %xc, [%p+16];\n"
      "cvt.u32.u64 %ra, %xa; cvt.u32.u64 %rb, %xb; cvt.u32.u64 %rc, %xc;\n"
      "cvt.u16.u64 %ha, %xa; cvt.u16.u64 %hb, %xb; cvt.u16.u64 %hc, %xc;\n"
      "mov.b32 %fa, %ra; mov.b32 %fb, %rb; mov.b32 %fc, %rc;\n"
      "mov.b64 %ga, %xa; mov.b64 %gb, %xb; mov.b64 %gc, %xc;\n"
      "mov.u64 %xd, 0; mov.u32 %rd, 0; mov.u16 %hd, 0; mov.f32 %fd, 0f00000000;"
      "mov.f64 %gd, 0d0000000000000000; setp.ne.u32 %t, %rc, 0;\n" +
      std::string(c.code) +
      "\n{ .reg .b32 %s; .reg .b64 %y; cvt.u64.u32 %y, %rd; or.b64 %xd, %xd, %y;"
      "cvt.u64.u16 %y, %hd; or.b64 %xd, %xd, %y; mov.b32 %s, %fd; cvt.u64.u32 %y, %s;"
      "or.b64 %xd, %xd, %y; mov.b64 %y, %gd; or.b64 %xd, %xd, %y; }\n"
      "st.global.b64 [%p+24], %xd;");
  Memory memory;
  const uint64_t at = memory.put(std::vector<uint64_t>{c.a, c.b, c.c, 0});
  Program(text).run(memory, {at}, 1, 1);
  return memory.get<uint64_t>(at)[3];
}

void check_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.code << " of " << std::hex << c.a << ", " << c.b << ", " << c.c);
    CHECK(result_of(c) == c.want);
  }
}

}  // namespace

TEST_CASE("integers wrap, clamp and carry as the manual says") {
  check_all({
      {"add.s32 %rd, %ra, %rb;", 0x7fffffff, 1, 0, 0x80000000},
      {"add.sat.s32 %rd, %ra, %rb;", 0x7fffffff, 1, 0, 0x7fffffff},
      {"sub.sat.s32 %rd, %ra, %rb;", 0x80000000, 1, 0, 0x80000000},
      {"sub.u64 %xd, %xa, %xb;", 0, 1, 0, ~0ull},
      {"add.u16 %hd, %ha, %hb;", 0xffff, 2, 0, 1},
      {"mul.lo.s32 %rd, %ra, %rb;", 0x10001, 0x10001, 0, 0x20001},
      {"mul.hi.s32 %rd, %ra, %rb;", 0xffffffff, 2, 0, 0xffffffff},
      {"mul.hi.u32 %rd, %ra, %rb;", 0xffffffff, 2, 0, 1},
      {"mul.hi.u64 %xd, %xa, %xb;", ~0ull, ~0ull, 0, ~0ull - 1},
      {"mul.hi.s64 %xd, %xa, %xb;", ~0ull, ~0ull, 0, 0},
      {"mul.wide.s32 %xd, %ra, %rb;", 0xffffffff, 3, 0, ~2ull},
      {"mul.wide.u32 %xd, %ra, %rb;", 0xffffffff, 0xffffffff, 0, 0xfffffffe00000001},
      {"mul.wide.s16 %rd, %ha, %hb;", 0x8000, 0x8000, 0, 0x40000000},
      {"mad.lo.s32 %rd, %ra, %rb, %rc;", 3, 5, 7, 22},
      {"mad.wide.u32 %xd, %ra, %rb, %xc;", 0xffffffff, 2, 1, 0x1ffffffff},
      {"div.s32 %rd, %ra, %rb;", uint32_t(-7), 2, 0, uint32_t(-3)},
      {"rem.s32 %rd, %ra, %rb;", uint32_t(-7), 2, 0, uint32_t(-1)},
      {"div.u32 %rd, %ra, %rb;", uint32_t(-7), 2, 0, 0x7ffffffc},
      {"div.s32 %rd, %ra, %rb;", 0x80000000, 0xffffffff, 0, 0x80000000},
      {"rem.s32 %rd, %ra, %rb;", 0x80000000, 0xffffffff, 0, 0},
      {"min.s32 %rd, %ra, %rb;", 0xffffffff, 1, 0, 0xffffffff},
      {"min.u32 %rd, %ra, %rb;", 0xffffffff, 1, 0, 1},
      {"abs.s32 %rd, %ra;", 0x80000000, 0, 0, 0x80000000},
      {"neg.s64 %xd, %xa;", 5, 0, 0, uint64_t(-5)},
  });
}

TEST_CASE("bits are shifted, counted and cut as the manual says") {
  check_all({
      {"shl.b32 %rd, %ra, %rb;", 1, 31, 0, 0x80000000},
      {"shl.b32 %rd, %ra, %rb;", 1, 32, 0, 0},
      {"shr.s32 %rd, %ra, %rb;", 0x80000000, 40, 0, 0xffffffff},
      {"shr.u32 %rd, %ra, %rb;", 0x80000000, 40, 0, 0},
      {"shr.b64 %xd, %xa, %rb;", 1ull << 63, 63, 0, 1},
      {"shr.s16 %hd, %ha, %rb;", 0x8000, 3, 0, 0xf000},
      {"not.b32 %rd, %ra;", 0xf0f0f0f0, 0, 0, 0x0f0f0f0f},
      {"cnot.b32 %rd, %ra;", 0, 0, 0, 1},
      {"cnot.b32 %rd, %ra;", 8, 0, 0, 0},
      {"popc.b64 %rd, %xa;", 0xff00ff00ff00ff00, 0, 0, 32},
      {"clz.b32 %rd, %ra;", 1, 0, 0, 31},
      {"clz.b64 %rd, %xa;", 0, 0, 0, 64},
      {"brev.b32 %rd, %ra;", 1, 0, 0, 0x80000000},
      {"bfind.u32 %rd, %ra;", 0x00010000, 0, 0, 16},
      {"bfind.s32 %rd, %ra;", 0xffffffff, 0, 0, 0xffffffff},
      {"bfind.shiftamt.u32 %rd, %ra;", 0x00010000, 0, 0, 15},
      {"bfe.u32 %rd, %ra, %rb, %rc;", 0x12345678, 8, 8, 0x56},
      {"bfe.s32 %rd, %ra, %rb, %rc;", 0x0000f800, 8, 8, 0xfffffff8},
      {"bfe.s32 %rd, %ra, %rb, %rc;", 0x80000000, 28, 8, 0xfffffff8},
      {"bfe.u32 %rd, %ra, %rb, %rc;", 0xffffffff, 4, 0, 0},
      {"bfi.b32 %rd, %ra, %rb, 4, 8;", 0xab, 0xffffffff, 0, 0xfffffabf},
      {"prmt.b32 %rd, %ra, %rb, %rc;", 0x33221100, 0x77665544, 0x7531, 0x77553311},
      {"prmt.b32 %rd, %ra, %rb, %rc;", 0x00008000, 0, 0x9999, 0xffffffff},
      {"shf.l.wrap.b32 %rd, %ra, %rb, %rc;", 0x80000000, 1, 1, 3},
      {"shf.r.clamp.b32 %rd, %ra, %rb, %rc;", 5, 7, 40, 7},
      {"lop3.b32 %rd, %ra, %rb, %rc, 0xe8;", 12, 10, 6, 14},  // the majority
      {"selp.b32 %rd, %ra, %rb, %t;", 1, 2, 0, 2},
      {"selp.b32 %rd, %ra, %rb, %t;", 1, 2, 1, 1},
      {"mov.b64 %xd, {%ra, %rb};", 1, 2, 0, 0x200000001},
      {"mov.b64 {%rd, _}, %xa;", 0x200000001, 0, 0, 1},
      {"mov.b64 {_, %rd}, %xa;", 0x200000001, 0, 0, 2},
      {"mov.b32 %rd, {%ha, %hb};", 1, 2, 0, 0x20001},
  });
}

TEST_CASE("floats are rounded, flushed and compared as the manual says") {
  const float tiny = 1e-40f;  // subnormal
  check_all({
      {"add.f32 %fd, %fa, %fb;", f(1), f(0x1p-24f), 0, f(1)},
      {"add.rp.f32 %fd, %fa, %fb;", f(1), f(0x1p-24f), 0, f(1 + 0x1p-23f)},
      {"add.rm.f32 %fd, %fa, %fb;", f(1), f(-0x1p-30f), 0, f(1 - 0x1p-24f)},
      {"add.rz.f32 %fd, %fa, %fb;", f(-1), f(0x1p-30f), 0, f(-1 + 0x1p-24f)},
      {"add.ftz.f32 %fd, %fa, %fb;", f(tiny), f(tiny), 0, 0},
      {"add.rn.f32 %fd, %fa, %fb;", f(tiny), f(tiny), 0, f(2 * tiny)},
      {"add.sat.f32 %fd, %fa, %fb;", f(1), f(1), 0, f(1)},
      {"mul.sat.f32 %fd, %fa, %fb;", nan32, f(1), 0, 0},
      {"add.f32 %fd, %fa, %fb;", inf32, inf32 | 0x80000000, 0, nan32},
      {"fma.rn.f32 %fd, %fa, %fb, %fc;", f(1 + 0x1p-12f), f(1 + 0x1p-12f), f(-1 - 0x1p-11f),
       f(0x1p-24f)},
      {"fma.rn.f64 %gd, %ga, %gb, %gc;", d(1 + 0x1p-30), d(1 - 0x1p-30), d(-1), d(-0x1p-60)},
      {"div.rn.f32 %fd, %fa, %fb;", f(1), f(3), 0, f(1.0f / 3)},
      {"div.rn.f64 %gd, %ga, %gb;", d(1), d(-0.0), 0, d(-INFINITY)},
      {"sqrt.rn.f32 %fd, %fa;", f(2), 0, 0, f(1.41421354f)},
      {"sqrt.rn.f32 %fd, %fa;", f(-0.0f), 0, 0, f(-0.0f)},
      {"rcp.rn.f32 %fd, %fa;", f(4), 0, 0, f(0.25f)},
      {"rsqrt.approx.f32 %fd, %fa;", f(4), 0, 0, f(0.5f)},
      {"ex2.approx.f32 %fd, %fa;", f(3), 0, 0, f(8)},
      {"lg2.approx.f32 %fd, %fa;", f(8), 0, 0, f(3)},
      {"min.f32 %fd, %fa, %fb;", f(-0.0f), f(0.0f), 0, f(-0.0f)},
      {"max.f32 %fd, %fa, %fb;", f(-0.0f), f(0.0f), 0, f(0.0f)},
      {"min.f32 %fd, %fa, %fb;", nan32, f(3), 0, f(3)},
      {"min.NaN.f32 %fd, %fa, %fb;", nan32, f(3), 0, nan32},
      {"max.f64 %gd, %ga, %gb;", d(2), d(3), 0, d(3)},
      {"neg.f32 %fd, %fa;", f(0.0f), 0, 0, f(-0.0f)},
      {"abs.f64 %gd, %ga;", d(-2), 0, 0, d(2)},
      {"copysign.f32 %fd, %fa, %fb;", f(-1), f(3), 0, f(-3)},
      {"fma.rn.f16 %hd, %ha, %hb, %hc;", 0x3c01, 0x3c01, 0xbc02,
       0x0010},  // 2^-20: the product is not rounded
      {"add.f16 %hd, %ha, %hb;", 0x3c00, 0x1000, 0, 0x3c00},
      {"setp.lt.f32 %q, %fa, %fb; selp.b32 %rd, 1, 0, %q;", nan32, f(1), 0, 0},
      {"setp.ltu.f32 %q, %fa, %fb; selp.b32 %rd, 1, 0, %q;", nan32, f(1), 0, 1},
      {"setp.ne.f32 %q, %fa, %fb; selp.b32 %rd, 1, 0, %q;", nan32, f(1), 0, 0},
      {"setp.neu.f32 %q, %fa, %fb; selp.b32 %rd, 1, 0, %q;", nan32, f(1), 0, 1},
      {"setp.nan.f64 %q, %ga, %gb; selp.b32 %rd, 1, 0, %q;", d(NAN), d(1), 0, 1},
      {"setp.num.f64 %q, %ga, %gb; selp.b32 %rd, 1, 0, %q;", d(2), d(1), 0, 1},
      {"setp.eq.f32 %q, %fa, %fb; selp.b32 %rd, 1, 0, %q;", f(-0.0f), f(0), 0, 1},
      {"setp.lo.u32 %q, %ra, %rb; selp.b32 %rd, 1, 0, %q;", 1, 0xffffffff, 0, 1},
      {"setp.lt.s32 %q, %ra, %rb; selp.b32 %rd, 1, 0, %q;", 1, 0xffffffff, 0, 0},
      {"setp.lt.and.s32 %q, %ra, %rb, !%t; selp.b32 %rd, 1, 0, %q;", 1, 2, 1, 0},
  });
}

TEST_CASE("conversions round, clamp and extend as the manual says") {
  check_all({
      {"cvt.rni.s32.f32 %rd, %fa;", f(2.5f), 0, 0, 2},
      {"cvt.rzi.s32.f32 %rd, %fa;", f(-2.9f), 0, 0, uint32_t(-2)},
      {"cvt.rmi.s32.f32 %rd, %fa;", f(-2.1f), 0, 0, uint32_t(-3)},
      {"cvt.rpi.s32.f32 %rd, %fa;", f(2.1f), 0, 0, 3},
      {"cvt.rzi.s32.f32 %rd, %fa;", f(1e10f), 0, 0, 0x7fffffff},
      {"cvt.rzi.u32.f32 %rd, %fa;", f(-5), 0, 0, 0},
      {"cvt.rzi.s32.f32 %rd, %fa;", nan32, 0, 0, 0},
      {"cvt.rzi.u64.f64 %xd, %ga;", d(1.8e19), 0, 0, 18000000000000000000ull},
      {"cvt.rzi.s64.f64 %xd, %ga;", d(-1e30), 0, 0, 1ull << 63},
      {"cvt.rn.f32.s32 %fd, %ra;", 0x7fffffff, 0, 0, f(0x1p31f)},
      {"cvt.rz.f32.s32 %fd, %ra;", 0x7fffffff, 0, 0, f(0x1p31f - 128)},
      {"cvt.rn.f32.u64 %fd, %xa;", ~0ull, 0, 0, f(0x1p64f)},
      {"cvt.rn.f64.s64 %gd, %xa;", uint64_t(-1), 0, 0, d(-1)},
      {"cvt.rn.f32.f64 %fd, %ga;", d(1 + 0x1p-30), 0, 0, f(1)},
      {"cvt.rp.f32.f64 %fd, %ga;", d(1 + 0x1p-30), 0, 0, f(1 + 0x1p-23f)},
      {"cvt.f64.f32 %gd, %fa;", f(0.1f), 0, 0, d(double(0.1f))},
      {"cvt.rn.f16.f32 %hd, %fa;", f(65520), 0, 0, 0x7c00},
      {"cvt.rz.f16.f32 %hd, %fa;", f(65520), 0, 0, 0x7bff},
      {"cvt.rn.f16.f64 %hd, %ga;", d(1 + 0x1p-11 + 0x1p-40), 0, 0, 0x3c01},  // not by way of f32
      {"cvt.rm.f16.f32 %hd, %fa;", f(-1 - 0x1p-20f), 0, 0, 0xbc01},
      {"cvt.rp.f16.f32 %hd, %fa;", f(1e-10f), 0, 0, 1},
      {"cvt.f32.f16 %fd, %ha;", 0x0001, 0, 0, f(0x1p-24f)},
      {"cvt.rni.f32.f32 %fd, %fa;", f(-0.4f), 0, 0, f(-0.0f)},
      {"cvt.rni.f64.f64 %gd, %ga;", d(3.5), 0, 0, d(4)},
      {"cvt.rpi.f32.f32 %fd, %fa;", f(-0.5f), 0, 0, f(-0.0f)},
      {"cvt.sat.f32.f32 %fd, %fa;", f(7), 0, 0, f(1)},
      {"cvt.ftz.f64.f32 %gd, %fa;", f(1e-40f), 0, 0, 0},
      {"cvt.s64.s32 %xd, %ra;", 0xffffffff, 0, 0, ~0ull},
      {"cvt.u64.u32 %xd, %ra;", 0xffffffff, 0, 0, 0xffffffff},
      {"cvt.s32.s8 %rd, %ra;", 0x1ff, 0, 0, 0xffffffff},
      {"cvt.u32.u8 %rd, %ra;", 0x1ff, 0, 0, 0xff},
      {"cvt.sat.s8.s32 %rd, %ra;", 1000, 0, 0, 127},
      {"cvt.sat.u8.s32 %rd, %ra;", uint32_t(-5), 0, 0, 0},
      {"cvt.u16.u32 %hd, %ra;", 0x12345, 0, 0, 0x2345},
  });
}
