#pragma once
// What kernels become on CPUs of x86-64. Nothing is run: they need not be present.
#include <string>

#include "tests/backend/harness/harness.h"

namespace quern::test {

struct X86 {
  const char *name, *extensions;
  const char* registers;  ///< the widest
  bool halves = false;    ///< arithmetic on halves
};
#define AVX2 "+avx2 +bmi +bmi2 +f16c +fma +lzcnt +movbe +popcnt"
#define AVX512 AVX2 " +avx512f +avx512bw +avx512cd +avx512dq +avx512vl"
constexpr X86 haswell = {"haswell", AVX2, "ymm"};
constexpr X86 skylake_server = {"skylake-avx512", AVX512, "zmm"};
constexpr X86 sapphire_rapids = {"sapphirerapids", AVX512 " +avx512fp16", "zmm", true};
#undef AVX2
#undef AVX512
constexpr X86 all_x86[] = {haswell, skylake_server, sapphire_rapids};
constexpr X86 with_avx512[] = {skylake_server, sapphire_rapids};

/// The device `cpu` as it would be on one of them.
runtime::Target target_of(const X86& cpu);

/// How many instructions of a kernel's optimised code match `pattern`.
int count(const runtime::Target& target, const ir::Kernel& kernel, const std::string& pattern);

/// What a kernel of level `structured`, of fields that do not overlap, is lowered to.
std::string lowered(const X86& cpu, const std::string& text);
/// How many instructions of such a kernel's code match.
int count_compiled(const X86& cpu, const std::string& text, const std::string& pattern);

}  // namespace quern::test
