// What instructions the CPU has, asked of the CPU.
#include "backends/cpu/isa.h"

#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>

#include <array>
#include <cstdint>
#endif

namespace quern::cpu {

bool has_extension(const std::string& isa, const std::string& name) {
  return (isa + " ").find(" +" + name + " ") != std::string::npos;
}

#if defined(__x86_64__)
namespace {

/// Registers whose state the system must keep for the extension to be of use (XCR0).
enum Needs : uint64_t { nothing = 0, avx_state = 0x6, avx512_state = 0xe6, amx_state = 0x60006 };

/// Words of CPUID.
enum Word { c1, d1, b7, c7, d7, a71, d71, ce, de, words };

struct Extension {
  const char* name;
  Word word;
  int bit;
  Needs needs = nothing;
};

/// Intel's and AMD's manuals; the names are LLVM's, in which some bits have two.
constexpr Extension extensions[] = {
    {"cx8", d1, 8},
    {"cmov", d1, 15},
    {"mmx", d1, 23},
    {"fxsr", d1, 24},
    {"sse", d1, 25},
    {"sse2", d1, 26},
    {"sse3", c1, 0},
    {"pclmul", c1, 1},
    {"ssse3", c1, 9},
    {"fma", c1, 12, avx_state},
    {"cx16", c1, 13},
    {"sse4.1", c1, 19},
    {"sse4.2", c1, 20},
    {"crc32", c1, 20},
    {"movbe", c1, 22},
    {"popcnt", c1, 23},
    {"aes", c1, 25},
    {"avx", c1, 28, avx_state},
    {"f16c", c1, 29, avx_state},
    {"bmi", b7, 3},
    {"avx2", b7, 5, avx_state},
    {"bmi2", b7, 8},
    {"avx512f", b7, 16, avx512_state},
    {"evex512", b7, 16, avx512_state},
    {"avx512dq", b7, 17, avx512_state},
    {"adx", b7, 19},
    {"avx512ifma", b7, 21, avx512_state},
    {"avx512cd", b7, 28, avx512_state},
    {"sha", b7, 29},
    {"avx512bw", b7, 30, avx512_state},
    {"avx512vl", b7, 31, avx512_state},
    {"avx512vbmi", c7, 1, avx512_state},
    {"avx512vbmi2", c7, 6, avx512_state},
    {"gfni", c7, 8},
    {"vaes", c7, 9, avx_state},
    {"vpclmulqdq", c7, 10, avx_state},
    {"avx512vnni", c7, 11, avx512_state},
    {"avx512bitalg", c7, 12, avx512_state},
    {"avx512vpopcntdq", c7, 14, avx512_state},
    {"avx512vp2intersect", d7, 8, avx512_state},
    {"amx-bf16", d7, 22, amx_state},
    {"avx512fp16", d7, 23, avx512_state},
    {"amx-tile", d7, 24, amx_state},
    {"amx-int8", d7, 25, amx_state},
    {"avxvnni", a71, 4, avx_state},
    {"avx512bf16", a71, 5, avx512_state},
    {"avxifma", a71, 23, avx_state},
    {"avxvnniint8", d71, 4, avx_state},
    {"avxneconvert", d71, 5, avx_state},
    {"avxvnniint16", d71, 10, avx_state},
    {"sahf", ce, 0},
    {"lzcnt", ce, 5},
    {"sse4a", ce, 6},
    {"prfchw", ce, 8},
    {"xop", ce, 11, avx_state},
    {"fma4", ce, 16, avx_state},
    {"tbm", ce, 21},
    {"64bit", de, 29},
};

uint64_t kept_state() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

}  // namespace

namespace {
std::string ask() {
  std::array<uint32_t, words> word = {};
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    word[c1] = c;
    word[d1] = d;
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    word[b7] = b;
    word[c7] = c;
    word[d7] = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) {
      word[a71] = a;
      word[d71] = d;
    }
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) {
    word[ce] = c;
    word[de] = d;
  }
  const bool asks_system = word[c1] >> 27 & 1;  // OSXSAVE
  const uint64_t state = asks_system ? kept_state() : 0;
  std::string text = "x86-64";
  for (const Extension& e : extensions)
    if (word[e.word] >> e.bit & 1 && (state & e.needs) == e.needs)
      text += std::string(" +") + e.name;
  return text;
}
}  // namespace

#else

namespace {
std::string ask() {
#if defined(__aarch64__)
  std::string text = "aarch64";
#else
  std::string text = "another architecture";
#endif
  // The first processor's lines: who made it, which part it is, what it has.
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line) && !line.empty();)
    for (const char* key : {"CPU implementer", "CPU part", "CPU variant", "Features", "cpu", "isa"})
      if (line.starts_with(key) && line.find(':') != std::string::npos)
        text += line.substr(line.find(':') + 1);
  return text;
}
}  // namespace

#endif

const std::string& host_isa() {
  static const std::string text = ask();
  return text;
}

}  // namespace quern::cpu
