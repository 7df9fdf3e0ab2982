// What kernels take of GPUs: read out of what the assemblers make, recorded, compared.
#include <filesystem>
#include <fstream>

#include "quern/ir/lower.h"
#include "quern/ir/text.h"
#include "runtime/compile/compile.h"
#include "tests/catch.h"
#include "tools/gpus/ptxas.h"
#include "tools/gpus/record.h"

using namespace quern;

namespace {

/// x[i] = f(x[i]) for code that makes %r of %a; the last task.
gpus::Resources of(const gpus::Gpu& gpu, const std::string& code) {
  auto kernel = ir::parse(
      "quern 1\nkernel @k level=structured\nbinding field rank=1 f32 \"x\"\nbody {\n"
      "%z = constant<0> : i32\n%n = extent<0.0> : i32\nparallel ordinal=0 %z, %n {(%i: i32)\n"
      "%a = load<0.0> %i : f32\n" +
      code + "store<0.0> %i, %r\nyield\n}\nyield\n}\n");
  runtime::Recording source(std::move(kernel));
  ir::Signature signature;
  signature.fields.push_back({true, 1});
  auto lowered = runtime::prepare(source, signature, gpu.target).kernel;
  return gpus::resources(gpu, *lowered).back();
}

std::string chain(int multiplications) {
  std::string code = "%v0 = add %a, %a : f32\n";
  for (int k = 1; k <= multiplications; k++)
    code += "%v" + std::to_string(k) + " = mul %v" + std::to_string(k - 1) + ", %a : f32\n";
  return code + "%r = add %v" + std::to_string(multiplications) + ", %a : f32\n";
}

}  // namespace

TEST_CASE("more operations are more instructions, by as many as there are") {
  for (const gpus::Gpu& gpu : gpus::all()) {
    if (gpu.target.backend == "cuda" && !gpus::ptxas()) continue;
    INFO(gpu.name);
    gpus::Resources few = of(gpu, chain(8)), many = of(gpu, chain(208));
    // NVIDIA's code is padded to a multiple of 8 instructions; LLVM puts delays into AMD's.
    CHECK(many.instructions - few.instructions >= 200 - 8);
    CHECK(many.instructions - few.instructions <= 2 * 200);
    CHECK(few.registers > 0);
    CHECK(few.registers < 64);
    CHECK(few.spilled_bytes == 0);
    CHECK(few.shared_bytes == 0);
  }
  if (!gpus::ptxas()) WARN("there is no ptxas: nothing is known of NVIDIA's GPUs");
}

TEST_CASE("what a record says is read back, and what is none is refused with its line") {
  std::string file = (std::filesystem::temp_directory_path() / "quern-record.txt").string();
  gpus::Recorded some = {{"triad 0 0 sm_80", {26, 0, 0, 64}},
                         {"a b 1 2 gfx942", {9, 8, 256, 7, gpus::Classes{1, 2, 3, 4, 5, 6, 7, 8}}}};
  gpus::write(some, file);
  CHECK(gpus::read(file) == some);
  for (const char* what :
       {"26 0 many 64: not four numbers of a task", "26 0 1 64 many: not eight numbers of its code",
        "26 0 1 64 1 2 3 4 5 6 7: not eight numbers of its code",
        "26 0 1 64 1 2 3 4 5 6 7 8 9: not eight numbers of its code"}) {
    const std::string numbers(what, std::string(what).find(':'));
    gpus::write(some, file);
    std::ofstream(file, std::ios::app) << "triad 0 1 sm_80: " << numbers << "\n";
    CHECK_THROWS_WITH(gpus::read(file), contains(file + ":5" + (what + numbers.size())));
  }
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(gpus::read(file), contains("cannot read " + file));
  CHECK_THROWS_WITH(gpus::write(some, "/nowhere/record.txt"),
                    contains("cannot write /nowhere/record.txt"));
}

TEST_CASE("AMD's instructions are counted by LLVM's names") {
  using gpus::Classes;
  const struct {
    const char* name;
    Classes want;
  } cases[] = {
      {"V_ADD_F32_e32_gfx11", {.arithmetic = 1}},
      {"V_RCP_F32_e32_gfx10", {.special = 1}},
      {"V_S_RCP_F32_e64_gfx12", {.special = 1}},
      {"V_S_EXP_F16_e64_gfx12", {.special = 1}},
      {"V_DUAL_ADD_F32_X_MUL_F32_gfx11", {.arithmetic = 2}},
      {"V_DUAL_MOV_B32_X_MOV_B32_gfx11", {}},
      {"V_DUAL_MOV_B32_X_ADD_F32_gfx12", {.arithmetic = 1}},
      {"V_DUAL_FMAC_F32_X_MOV_B32_gfx11", {.arithmetic = 1}},
      {"V_MOV_B32_e32_gfx10", {}},
      {"V_CVT_F32_I32_e32_vi", {}},
      {"V_READLANE_B32_gfx10", {}},
      {"V_PERMLANEX16_B32_e64_gfx11", {.shuffles = 1}},
      {"DS_BPERMUTE_B32_gfx11", {.shuffles = 1}},
      {"DS_PERMUTE_B32_vi", {.shuffles = 1}},
      {"DS_SWIZZLE_B32_gfx10", {.shuffles = 1}},
      {"DS_READ_B32_vi", {.shared = 1}},
      {"DS_LOAD_B128_gfx12", {.shared = 1}},
      {"GLOBAL_LOAD_DWORD_SADDR_vi", {.loads = 1}},
      {"GLOBAL_STORE_B32_SADDR_gfx11", {.stores = 1}},
      {"GLOBAL_ATOMIC_ADD_F32_gfx12", {.atomics = 1}},
      {"S_BARRIER_gfx10", {.barriers = 1}},
      {"S_BARRIER_SIGNAL_IMM_gfx12", {.barriers = 1}},
      {"S_BARRIER_WAIT_gfx12", {}},
      {"S_ADD_U32_gfx10", {}},
  };
  for (const auto& [name, want] : cases) {
    INFO(name);
    Classes found;
    gpus::count(name, found);
    CHECK(found == want);
  }
}

TEST_CASE("AMD's code is counted by what its instructions do") {
  for (const gpus::Gpu& gpu : gpus::all()) {
    if (gpu.target.backend != "rocm") continue;
    INFO(gpu.name);
    const gpus::Resources few = of(gpu, chain(8)), many = of(gpu, chain(208));
    REQUIRE(few.classes);
    CHECK(few.classes->loads ==
          2);  // the error record and the element; scalar units read the guard
    CHECK(few.classes->stores == 1);
    CHECK(few.classes->special == 0);
    CHECK(few.classes->atomics == 0);
    CHECK(few.classes->barriers == 0);
    CHECK(few.classes->shared == 0);
    CHECK(few.classes->shuffles == 0);
    CHECK(many.classes->arithmetic - few.classes->arithmetic == 200);
    const gpus::Resources root = of(gpu, "%r = sqrt %a : f32\n");
    CHECK(root.classes->special == 1);
  }
}
