// What the emitted code must and must not hold: rounding, orderings, operations that LLVM drops.
#include <algorithm>
#include <regex>

#include "backends/cuda/api.h"
#include "backends/rocm/api.h"
#include "backends/rocm/compiler.h"
#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "runtime/compile/compile.h"
#include "tests/catch.h"
#include "tests/targets/assembly.h"
#include "tools/gpus/gpus.h"

using namespace quern;
using test::assembly;
using test::element_wise;

namespace {

size_t count(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) n++;
  return n;
}

std::string reduction(const std::string& op, const std::string& type, const char* how = "") {
  return "kernel @k level=structured results(" + type + ")\nbinding field rank=1 " + type +
         " \"x\"\nbody {\n%z = constant<0> : i32\n%n = extent<0.0> : i32\n%s = slot<1> : slot " +
         type + "\nparallel " + how + " ordinal=0 %z, %n {(%i: i32)\n%v = load<0.0> %i : " + type +
         "\nreduce." + op + " %s, %v\nyield\n}\n%r = get %s : " + type + "\nyield %r\n}\n";
}

std::string atomic(const std::string& op, const std::string& type) {
  return "kernel @k level=structured\nbinding field rank=1 " + type +
         " \"x\"\nbinding field rank=1 i32 \"at\"\nbody {\n%z = constant<0> : i32\n"
         "%n = extent<1.0> : i32\nparallel ordinal=0 %z, %n {(%i: i32)\n"
         "%j = load<1.0> %i : i32\n%v = constant<1> : " +
         type + "\n%old = atomic." + op + "<0.0> %j, %v : " + type + "\nyield\n}\nyield\n}\n";
}

}  // namespace

TEST_CASE("PTX in strict mode rounds to nearest and never fuses or flushes") {
  std::string text = assembly("sm_80", element_wise(R"(%m = mul %a, %b : f32
    %s = add %m, %b : f32
    %d = div %s, %a : f32
    %r = sqrt %d : f32)"),
                              {.strict = true});
  CHECK(count(text, "mul.rn.f32") > 0);
  CHECK(count(text, "add.rn.f32") > 0);
  CHECK(count(text, "div.rn.f32") > 0);
  CHECK(count(text, "sqrt.rn.f32") > 0);
  for (const char* word : {"fma.", ".ftz", ".approx", ".full"}) CHECK(count(text, word) == 0);
  CHECK(count(text, "mad.") == count(text, "mad.lo."));  // of integers: a thread's number
}

/// ptxas takes max(min(a, b), 0) == b for the question whether a was chosen.
TEST_CASE("ptxas is shown no comparison of a number that is 0 where it would be below") {
  for (const char* inner : {"min", "max"})
    for (const char* compare : {"eq %c, %b", "ne %c, %b", "eq %b, %c", "eq %c, %d"}) {
      INFO(inner << " " << compare);
      const std::string clamped = "%none = constant<0> : i32\n%m = " + std::string(inner) +
                                  " %a, %b : i32\n%c = max %m, %none : i32\n"
                                  "%most = max %b, %a : i32\n%d = max %most, %none : i32\n%e = " +
                                  compare + " : b1\n%r = convert %e : i32";
      const std::string text = assembly("sm_90", element_wise(clamped, "i32"));
      if (std::string(inner) == "max" && std::string(compare) == "eq %c, %d") continue;  // alike
      const std::string result = "max\\.s32\\s+(%r\\d+), %r\\d+, 0;[^]*";
      CHECK(std::regex_search(text, std::regex(result + "xor\\.b32\\s+%r\\d+, .*\\1[,;]")));
      CHECK(
          !std::regex_search(text, std::regex(result + "setp\\.\\w+\\.s32\\s+%p\\d+, .*\\1[,;]")));
    }
}

TEST_CASE("components side by side move together where the field is aligned") {
  auto with = [](const std::string& alignment) {
    return "kernel @k level=structured\nbinding field rank=1 f32, f32, f32, f32 \"x\"" + alignment +
           " step=16 offsets(0, 4, 8, 12)\nbody {\n%z = constant<0> : i32\n%n = extent<0.0> : i32\n"
           "parallel ordinal=0 %z, %n {(%i: i32)\n%a = load<0.0> %i : f32\n"
           "%b = load<0.1> %i : f32\n%c = load<0.2> %i : f32\n%d = load<0.3> %i : f32\n"
           "store<0.0> %i, %d\nstore<0.1> %i, %c\nstore<0.2> %i, %b\nstore<0.3> %i, %a\n"
           "yield\n}\nyield\n}\n";
  };
  std::string whole = assembly("sm_80", with(" align=16"));
  CHECK(count(whole, "ld.global.v4.f32") == 1);
  CHECK(count(whole, "st.global.v4.f32") == 1);
  std::string halves = assembly("sm_80", with(" align=8"));
  CHECK(count(halves, "ld.global.v2.f32") == 2);
  CHECK(count(halves, "st.global.v2.f32") == 2);
  std::string single = assembly("sm_80", with(""));
  CHECK(count(single, "ld.global.f32") == 4);
  CHECK(count(single, ".v") ==
        count(single, ".visible") + count(single, ".version") + count(single, ".volatile"));
}

TEST_CASE("sums of constant length, in any order too, load several elements before they add") {
  const std::string sums = R"(kernel @k level=structured
    binding field rank=1 f32 "x"
    binding field rank=2 f32 "y"
    body {
      %z = constant<0> : i32
      %n = extent<0.0> : i32
      %m = constant<32> : i32
      %one = constant<1> : i32
      %none = constant<0> : f32
      parallel ordinal=0 %z, %n {(%i: i32)
        %sum = loop %z, %m, %one, %none : f32 {(%j: i32, %so: f32)
          %v = load<1.0> %i, %j : f32
          %w = mul %v, %v : f32
          %next = add.reassociate %so, %w : f32
          yield %next
        }
        store<0.0> %i, %sum
        yield
      }
      yield
    }
  )";
  const std::string text = assembly("sm_90", sums);
  CHECK(count(text, "nounroll") == 0);  // which ptxas obeys
  CHECK(count(text, "ld.global.nc.f32") >= 4);
  CHECK(count(assembly("gfx90a", sums), "global_load_dword") >= 4);
}

TEST_CASE("a location that a warp's threads share is updated once for all of them") {
  // Loops over the updates of x[%j + 1], the same for all threads, or x[%p + 1].
  auto in_loop = [](const std::string& op, const std::string& type, const std::string& places) {
    std::string text = "kernel @k level=structured\nbinding field rank=1 " + type +
                       " \"x\"\nbinding field rank=1 " + type +
                       " \"y\"\nbinding field rank=1 i32 \"at\"\nbody {\n"
                       "%z = constant<0> : i32\n%n = extent<1.0> : i32\n"
                       "%m = constant<100> : i32\n%one = constant<1> : i32\n";
    for (size_t k = 0; k < places.size(); k++)
      text += "parallel ordinal=" + std::to_string(k) +
              " %z, %n {(%i: i32)\n%p = load<2.0> %i : i32\n%v = load<1.0> %i : " + type +
              "\nloop %z, %m, %one {(%j: i32)\n%k = add %" + places[k] +
              ", %one : i32\n%old = atomic." + op + "<0.0> %k, %v : " + type +
              "\nyield\n}\nyield\n}\n";
    return text + "yield\n}\n";
  };
  for (const char* type : {"f32", "f64", "i32", "u64"}) {
    INFO(type);
    const std::string once = assembly("sm_80", in_loop("add", type, "j"));
    const size_t there = count(once, "match.all.sync.b64");  // twice where the loop is unrolled
    CHECK(there > 0);
    const size_t words = type[1] == '6' ? 2 : 1;
    CHECK(count(once, "shfl.sync.down.b32") == 5 * words * there);
    CHECK(count(assembly("sm_80", in_loop("add", type, "p")), "match.") == 0);
    CHECK(count(assembly("gfx90a", in_loop("add", type, "j")), "v_mbcnt") > 0);  // by LLVM
    CHECK(count(assembly("gfx90a", in_loop("add", type, "p")), "v_mbcnt") == 0);
  }
  // Each task is looked at by itself.
  const std::string both = assembly("sm_80", in_loop("add", "i32", "jp"));
  const size_t second = both.find(".entry task_1");
  CHECK(count(both.substr(0, second), "match.") > 0);
  CHECK(count(both.substr(second), "match.") == 0);
  // Who looks at the location finds its own update there, so each makes it itself.
  std::string seen = in_loop("add", "i32", "j");
  const std::string end = "yield\n}\nyield";
  seen.replace(seen.find(end), end.size(),
               "%sum = atomic.load<0.0> %k : i32\nstore<1.0> %i, %sum\n" + end);
  CHECK(count(assembly("sm_80", seen), "match.") == 0);
  // Where threads part on the way each updates it.
  std::string some = in_loop("add", "i32", "j");
  const std::string update = "%old = atomic.add<0.0> %k, %v : i32";
  some.replace(some.find(update), update.size(),
               "%c = lt %v, %k : b1\nif %c {\n" + update + "\nyield\n} {\nyield\n}");
  CHECK(count(assembly("sm_80", some), "match.") == 0);
  CHECK(count(assembly("sm_80", in_loop("max", "i32", "j")), "match.") > 0);
  CHECK(count(assembly("sm_80", in_loop("max", "f32", "j")), "match.") == 0);
  CHECK(count(assembly("sm_80", in_loop("exchange", "i32", "j")), "match.") == 0);
  CHECK(count(assembly("sm_80", in_loop("add", "i32", "j"), {.strict = true}), "match.") > 0);
}

TEST_CASE("PTX calls the math library where a task holds much of it") {
  auto exponentials = [](int count) {
    std::string code = "%e0 = exp %a : f32\n";
    for (int k = 1; k < count; k++)
      code += "%e" + std::to_string(k) + " = exp %e" + std::to_string(k - 1) + " : f32\n";
    return assembly("sm_80",
                    element_wise(code + "%r = add %e" + std::to_string(count - 1) + ", %b : f32"));
  };
  CHECK(count(exponentials(20), "call.uni") == 0);
  const std::string many = exponentials(300);
  CHECK(count(many, "call.uni") == 300);
  CHECK(count(many, ".func") == 1);
}

TEST_CASE("of long code PTX keeps in memory what registers would not hold") {
  // 300 products, then their sum from the last to the first: all live at once.
  std::string code = "%p0 = mul %a, %b : f32\n";
  for (int k = 1; k < 300; k++)
    code += "%p" + std::to_string(k) + " = mul %p" + std::to_string(k - 1) + ", %b : f32\n";
  code += "%s299 = sqrt %p299 : f32\n";
  for (int k = 298; k >= 0; k--)
    code += "%s" + std::to_string(k) + " = fma %s" + std::to_string(k + 1) + ", %p" +
            std::to_string(k) + ", %a : f32\n";
  code += "%r = add %s0, %a : f32";
  const std::string text = assembly("sm_80", element_wise(code));
  CHECK(count(text, "st.local.f32") > 80);
  CHECK(count(text, "st.local.f32") < 150);
  CHECK(count(text, "ld.local.f32") == count(text, "st.local.f32"));
  CHECK(count(text, "%tid.y") == 1);  // an offset of 0, so that ptxas leaves it in memory
}

TEST_CASE("rsqrt is the GPU's instruction in default mode and made of √ and ÷ in strict mode") {
  const std::string code = element_wise("%r = rsqrt %a : f32");
  CHECK(count(assembly("sm_80", code), "rsqrt.approx.f32") == 1);
  CHECK(count(assembly("gfx90a", code), "v_rsq_f32") == 1);
  std::string strict = assembly("sm_80", code, {.strict = true});
  CHECK(count(strict, "sqrt.rn.f32") == 1);
  CHECK(count(strict, "approx") == 0);
  CHECK(count(assembly("gfx90a", code, {.strict = true}), "v_rsq_f32") == 0);
}

TEST_CASE("PTX in default mode contracts a product and a sum, and nothing else") {
  std::string text = assembly("sm_80", element_wise(R"(%m = mul %a, %b : f32
    %s = add %m, %b : f32
    %r = div %s, %a : f32)"));
  CHECK(count(text, "fma.rn.f32") > 0);
  CHECK(count(text, "div.rn.f32") > 0);
  for (const char* word : {"add.f32", ".ftz", ".approx"}) CHECK(count(text, word) == 0);
}

TEST_CASE("AMD code keeps subnormals, and its division and square root are the exact sequences") {
  for (const char* gpu : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    INFO(gpu);
    std::string text =
        assembly(gpu, element_wise("%d = div %a, %b : f32\n%r = sqrt %d : f32"), {.strict = true});
    CHECK(count(text, ".amdhsa_float_denorm_mode_32 3") == 1);
    CHECK(count(text, ".amdhsa_float_denorm_mode_16_64 3") == 1);
    CHECK(count(text, ".amdhsa_ieee_mode 0") == 0);
    CHECK(count(text, "v_div_fixup_f32") == 1);
    CHECK(count(text, "v_div_fmas_f32") == 1);
    CHECK(count(text, "v_sqrt_f32") == 1);
    CHECK(count(text, "v_fma_f32") >= 4);  // the corrections of both
  }
}

TEST_CASE("an AMD kernel contracts in default mode only") {
  const std::string code = element_wise("%m = mul %a, %b : f32\n%r = add %m, %b : f32");
  std::string plain = assembly("gfx942", code), strict = assembly("gfx942", code, {.strict = true});
  auto fused = [](const std::string& t) { return count(t, "v_fma") + count(t, "v_pk_fma"); };
  CHECK(fused(plain) > 0);
  CHECK(fused(strict) == 0);
  CHECK(count(strict, "v_mul_f32") > 0);
  CHECK(count(plain, "v_mul_f32") == 0);
}

TEST_CASE("no AMD code adds a zero to a product: that would make +0 of -0") {
  // v_fma_mixlo_f16 and its like round x·y + z to a half.
  const std::regex adds_zero("v_(fma|mad)_mix(lo|hi)?_f(16|32) [^,]+,[^,]+,[^,]+, (0|0x0)\\b");
  const char* of_floats[] = {
      "%h = mul %a, %b : f32",
      "%p = mul %a, %b : f32\n%h = neg %p : f32",
      "%p = mul %a, %b : f32\n%h = abs %p : f32",
      "%p = mul %a, %a : f32\n%q = neg %p : f32\n%h = mul %q, %b : f32",
      "%c = constant<2> : f32\n%h = mul %a, %c : f32",
      "%c = constant<0.25> : f32\n%h = div %a, %c : f32",
      "%q = neg %b : f32\n%h = mul %a, %q : f32",
      "%p = mul %a, %b : f32\n%c = lt %a, %b : b1\n%h = select %c, %p, %a : f32",
      "%p = mul %a, %b : f32\n%h = max %p, %a : f32",
      "%h = div %a, %b : f32",
      "%h = rsqrt %a : f32",
      "%h = exp %a : f32"};
  const char* of_halves[] = {"%r = mul %a, %b : f16", "%p = mul %a, %b : f16\n%r = neg %p : f16",
                             "%p = mul %a, %b : f16\n%r = add %p, %a : f16",
                             "%r = div %a, %b : f16", "%r = fma %a, %b, %a : f16"};
  for (const char* gpu : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    for (bool strict : {false, true}) {
      auto judge = [&](const std::string& code, const std::string& type) {
        INFO(gpu << (strict ? " strict " : " ") << code);
        std::string text = assembly(gpu, element_wise(code, type), {.strict = strict});
        CHECK(!std::regex_search(text, adds_zero));
      };
      for (const std::string code : of_floats)
        judge(code + "\n%w = convert %h : f16\n%r = convert %w : f32", "f32");
      for (const char* code : of_halves) judge(code, "f16");
    }
  }
}

TEST_CASE("a product rounded to a half is a product and a conversion on AMD's GPUs, no more") {
  for (const char* gpu : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    INFO(gpu);
    const std::string code = "%p = mul %a, %b : f32\n%w = convert %p : f16\n%r = convert %w : f32";
    std::string text = assembly(gpu, element_wise(code));
    CHECK(count(text, "v_mul_f32") == 1);
    CHECK(count(text, "v_cvt_f16_f32") == 1);
    CHECK(count(text, "v_max_f32") + count(text, "v_max_num_f32") == 0);
  }
}

TEST_CASE("no GPU takes a choice between zeros for its minimum or maximum") {
  // `%b < %a ? %b : %a` of -0 and +0 is the first; the instructions give -0 or +0 whatever the
  // order.
  const std::regex extremum(
      "(\\bv_(min|max)(_num|imum|imum3|3)?_f|\\b(min|max)(\\.NaN)?\\.f|"
      "\\bv_med3_f|\\bclamp\\b)");
  const char* of_zeros[] = {
      "%z0 = constant<0> : T\n%c = lt %a, %z0 : b1\n%r = select %c, %a, %z0 : T",
      "%z0 = constant<-0> : T\n%c = lt %a, %z0 : b1\n%r = select %c, %a, %z0 : T",
      "%z0 = constant<0> : T\n%c = lt %z0, %a : b1\n%r = select %c, %a, %z0 : T",
      "%z0 = constant<0> : T\n%r = min %z0, %a : T",
      "%z0 = constant<0> : T\n%r = max %z0, %a : T",
      "%z0 = constant<0> : T\n%r = min %a, %z0 : T",
      "%z0 = constant<0> : T\n%r = max %a, %z0 : T",
      "%r = min %a, %b : T",
      "%r = max %a, %b : T"};
  for (const char* gpu :
       {"sm_70", "sm_80", "sm_90", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    for (bool strict : {false, true}) {
      for (const char* type : {"f32", "f64", "f16"}) {
        for (const char* code : of_zeros) {
          INFO(gpu << (strict ? " strict " : " ") << type << " " << code);
          const std::string typed =
              std::regex_replace(std::string(code), std::regex("\\bT\\b"), type);
          std::string text = assembly(gpu, element_wise(typed, type), {.strict = strict});
          CHECK(!std::regex_search(text, extremum));
        }
        const std::string bounded =
            std::string("%five = constant<5> : ") + type + "\n%r = min %five, %a : " + type;
        std::string text = assembly(gpu, element_wise(bounded, type), {.strict = strict});
        INFO(gpu << " " << type);
        CHECK(std::regex_search(text, extremum));  // where no zero is, one instruction does
      }
    }
  }
}

TEST_CASE("halves are divided in f32 on AMD's GPUs, where division is exact") {
  for (const char* gpu : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    for (bool strict : {false, true}) {
      INFO(gpu << (strict ? " strict" : ""));
      std::string text =
          assembly(gpu, element_wise("%r = div %a, %b : f16", "f16"), {.strict = strict});
      CHECK(count(text, "v_div_fixup_f32") == 1);
      CHECK(count(text, "v_div_fixup_f16") == 0);
    }
  }
}

TEST_CASE("no AMD code doubles or halves a result on its way: that would flush") {
  const char* codes[] = {"%s = add %a, %b : f32\n%c = constant<0.5> : f32\n%r = mul %s, %c : f32",
                         "%s = add %a, %b : f32\n%c = constant<2> : f32\n%r = mul %s, %c : f32",
                         "%s = mul %a, %b : f32\n%c = constant<4> : f32\n%r = mul %s, %c : f32",
                         "%s = mul %a, %b : f32\n%r = add %s, %s : f32"};
  for (const char* gpu : {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"}) {
    for (const char* code : codes) {
      for (bool strict : {false, true}) {
        INFO(gpu << " " << code);
        std::string text = assembly(gpu, element_wise(code), {.strict = strict});
        for (const char* word : {" mul:2", " mul:4", " div:2"}) CHECK(count(text, word) == 0);
      }
    }
  }
}

TEST_CASE("atomics are relaxed and of the device's scope on every GPU") {
  for (const char* op : {"add", "min", "max", "bit_and", "bit_or", "bit_xor", "exchange"}) {
    for (const char* type : {"i32", "u32", "i64", "u64"}) {
      INFO(op << " " << type);
      for (const gpus::Gpu& gpu : gpus::all()) {
        INFO(gpu.name);
        std::string text = assembly(gpu.name, atomic(op, type));
        if (gpu.target.backend == "cuda") {
          CHECK(count(text, "atom.") + count(text, "red.") >= 1);
          for (const char* word : {".sys", ".acquire", ".release", "fence", "membar"})
            CHECK(count(text, word) == 0);
        } else {
          CHECK(count(text, "global_atomic_") >= 1);
          for (const char* word : {"buffer_wbl2", "buffer_inv", "buffer_gl"})
            CHECK(count(text, word) == 0);
        }
      }
    }
  }
}

TEST_CASE("sums of floats in memory are one instruction where the GPU has it") {
  for (const char* type : {"f32", "f64"}) {
    std::string text = assembly("sm_80", atomic("add", type));
    CHECK(count(text, std::string(".add.") + type) > 0);
    CHECK(count(text, ".cas.") == 0);
  }
  CHECK(count(assembly("gfx90a", atomic("add", "f64")), "global_atomic_add_f64") > 0);
  CHECK(count(assembly("gfx942", atomic("add", "f32")), "global_atomic_add_f32") > 0);
  CHECK(count(assembly("gfx1100", atomic("add", "f32")), "global_atomic_add_f32") > 0);
  CHECK(count(assembly("gfx1030", atomic("add", "f32")), "global_atomic_cmpswap") > 0);  // has none
}

TEST_CASE("what a task only reads is loaded through the read-only path") {
  const std::string apart = assembly("sm_80", element_wise("%r = add %a, %b : f32"));
  CHECK(count(apart, "ld.global.nc.f32") == 2);
  CHECK(count(apart, "ld.global.f32") == 0);
  // Where the third field may be the first, only the second is read alone.
  std::string in_place = element_wise("%r = add %a, %b : f32");
  in_place.replace(in_place.find("store<2.0>"), 10, "store<0.0>");
  const std::string text = assembly("sm_80", in_place);
  CHECK(count(text, "ld.global.nc.f32") == 1);
  CHECK(count(text, "ld.global.f32") == 1);
}

TEST_CASE("a sum goes through shuffles, then shared memory, then one atomic a block") {
  for (const char* type : {"f32", "f64", "i32", "u64"}) {
    INFO(type);
    const int words = type[1] == '6' ? 2 : 1;
    std::string text = assembly("sm_80", reduction("add", type));
    CHECK(count(text, "shfl.sync.down.b32") == size_t(5 * words));
    CHECK(count(text, "bar.sync") == 1);
    CHECK(count(text, ".shared .align 8") == 1);
    CHECK(count(text, "atom.global") + count(text, "red.global") == 1);
    std::string amd = assembly("gfx942", reduction("add", type));
    CHECK(count(amd, "ds_bpermute_b32") == size_t(5 * words));
    CHECK(count(amd, "s_barrier") == 1);
    CHECK(count(amd, "global_atomic_") == 1);
  }
}

TEST_CASE("a deterministic sum has an order, so no shuffles and no atomics on its value") {
  std::string text = assembly("sm_80", reduction("add", "f32", "deterministic"));
  CHECK(count(text, "shfl") == 0);
  CHECK(count(text, "atom.global.add.f32") + count(text, "red.global.add.f32") == 0);
}

/// The PTX ISA manual on atom and red: `.add.f32` on global memory flushes subnormal inputs and
/// results to zeros of their sign, those of f64 do not.
TEST_CASE("f32 sums in memory are the only PTX that flushes, and strict kernels have none") {
  std::string scatter = assembly("sm_80", atomic("add", "f32"));
  CHECK(count(scatter, "red.global.add.f32") + count(scatter, "atom.global.add.f32") == 1);
  CHECK(count(scatter, ".ftz") == 0);
  std::string sum = assembly("sm_80", reduction("add", "f32"));
  CHECK(count(sum, "red.global.add.f32") + count(sum, "atom.global.add.f32") == 1);
  CHECK(count(sum, ".ftz") == 0);
  for (const char* op : {"add", "mul", "min", "max"}) {
    for (const char* type : {"f32", "f64"}) {
      INFO(op << " " << type);
      std::string strict = assembly("sm_80", reduction(op, type), {.strict = true});
      for (const char* word : {".add.f32 \t%f", "atom.global.add.f", "red.global.add.f", ".ftz"})
        CHECK(count(strict, word) == 0);
    }
  }
  auto kernel = ir::parse("quern 1\n" + atomic("add", "f32"));
  ir::split(*kernel);
  ir::Signature signature;
  signature.fields = {{true, 1}, {true, 2}};
  CHECK_THROWS_WITH(ir::expect_ordered(*kernel, signature), contains("a float atomic add"));
}

TEST_CASE("a target that LLVM does not know is refused with its name") {
  CHECK_THROWS_WITH(rocm::target_for("gfx0"), contains("'gfx0'"));
  CHECK_THROWS_WITH(rocm::target_for("sm_90"), contains("'sm_90' is no architecture of AMD's"));
  ir::Kernel nothing;
  nothing.level = ir::Level::lowered;
  CHECK_THROWS_WITH(rocm::compiler().compile(nothing, rocm::target_for("gfx9999")),
                    contains("does not know the architecture 'gfx9999'"));
  CHECK_THROWS_WITH(rocm::target_for("gfx942", rocm::Wave::lanes_32), contains("64 lanes only"));
  CHECK_THROWS_WITH(cuda::target_for(61), contains("6.1"));
  CHECK(cuda::target_for(90).isa == "nvptx64-nvidia-cuda sm_90 +ptx78");
  CHECK(cuda::target_for(120).isa == cuda::target_for(90).isa);  // PTX serves later devices
  CHECK(rocm::target_for("gfx90a:sramecc+:xnack-").isa == rocm::target_for("gfx90a").isa);
}
