#include "backends/cpu/compiler.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <sstream>

#include "backends/cpu/isa.h"
#include "backends/llvm/toolchain.h"
#include "quern/error.h"

namespace quern::cpu {

namespace {

void initialise() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
}

/// The body of a loop up to the usual size becomes vector code, and one through which many values pass
/// (a step of MPM in 3D: 3,700 operations; what goes back through thousands) up to a size that LLVM
/// still takes seconds for.
constexpr codegen::FunctionSizes function_sizes = {.usual = 1500, .whole = 100'000, .most = 6000};

/// Accesses of wide vectors go past the thread sanitizer.
constexpr bool vectorise = codegen::own_sanitizer != codegen::Sanitizer::thread;

codegen::Machine describe(const codegen::Isa& isa, const llvm::TargetMachine& machine) {
  codegen::Machine out = codegen::machine_of(isa, machine);
  out.function_sizes = function_sizes;
  if (!vectorise) return out;
  auto has = [&](const char* feature) { return isa.features.find(feature) != std::string::npos; };
  out.vector_bits = has("+avx512f") ? 512 : has("+avx2") ? 256 : 128;
  if (has("+avx512f")) out.attributes.push_back({"prefer-vector-width", "512"});
  out.masks = has("+avx512bw") && has("+avx512vl");
  return out;
}

/// Local arrays live on the stacks of the threads.
constexpr uint64_t max_local_bytes = 1 << 20;

/// This CPU in LLVM's words. What LLVM finds in it besides what its isa names is not used: the image
/// would not say that it needs it.
const std::string& host_in_llvm() {
  static const std::string text = [] {
    const std::string named = host_isa();
    codegen::Isa isa{llvm::sys::getProcessTriple(), llvm::sys::getHostCPUName().str(), ""};
    std::vector<std::string> features;
    for (const auto& f : llvm::sys::getHostCPUFeatures()) {
      const std::string name = f.first().str();
      const bool use = f.second && (has_extension(named, name) || !named.starts_with("x86-64 "));
      features.push_back((use ? "+" : "-") + name);
    }
    std::ranges::sort(features, {}, [](const std::string& f) { return f.substr(1); });
    for (const std::string& f : features) isa.features += (isa.features.empty() ? "" : ",") + f;
    return isa.text();
  }();
  return text;
}

/// Another CPU of x86-64 than this one is to LLVM what its isa names.
std::string in_llvm(const std::string& isa) {
  if (isa == host_isa()) return host_in_llvm();
  std::istringstream words(isa);
  std::string architecture, word;
  words >> architecture;
  if (architecture != "x86-64" || !host_isa().starts_with("x86-64"))
    throw InternalError("code for a CPU of another architecture than this one: " + isa);
  codegen::Isa out{llvm::sys::getProcessTriple(), "x86-64", ""};
  while (words >> word) out.features += (out.features.empty() ? "" : ",") + word;
  return out.text();
}

/// The CPU that LLVM takes this one for, by which it chooses among instructions.
std::string host_cpu() { return codegen::Isa::parse(host_in_llvm()).cpu; }

const codegen::Toolchain tools = {.backend = "cpu",
                                  .isa = in_llvm,
                                  .initialise = initialise,
                                  .describe = describe,
                                  .vectorise = vectorise,
                                  .long_code = codegen::Registers{},
                                  .assembly = "asm",
                                  .max_local_bytes = max_local_bytes,
                                  .sanitizer = codegen::own_sanitizer,
                                  .besides = host_cpu};

}  // namespace

const runtime::Compiler& compiler() {
  static const codegen::Compiler one(tools);
  return one;
}

}  // namespace quern::cpu
