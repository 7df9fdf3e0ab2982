#include "backends/cpu/compiler.h"

#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include "backends/llvm/toolchain.h"

namespace quern::cpu {

namespace {

void initialise() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
}

/// The body of a loop up to the usual size becomes vector code. Time to compile grows faster from
/// there on; code through which many values pass (a step of MPM in 3D: 3,700 operations) is worth
/// it.
constexpr codegen::FunctionSizes function_sizes = {.usual = 1500, .most = 6000};

codegen::Machine describe(const codegen::Isa& isa, const llvm::TargetMachine& machine) {
  codegen::Machine out = codegen::machine_of(isa, machine);
  out.function_sizes = function_sizes;
  auto has = [&](const char* feature) { return isa.features.find(feature) != std::string::npos; };
  out.vector_bits = has("+avx512f") ? 512 : has("+avx2") ? 256 : 128;
  if (has("+avx512f")) out.attributes.push_back({"prefer-vector-width", "512"});
  return out;
}

/// Local arrays live on the stacks of the threads.
constexpr uint64_t max_local_bytes = 1 << 20;

const codegen::Toolchain tools = {.backend = "cpu",
                                  .initialise = initialise,
                                  .describe = describe,
                                  .vectorise = true,
                                  .assembly = "asm",
                                  .max_local_bytes = max_local_bytes};

}  // namespace

runtime::Image Compiler::compile(const ir::Kernel& kernel, const runtime::Target& target) const {
  return {codegen::compile(tools, kernel, target)};
}

std::string Compiler::listing(const ir::Kernel& kernel, const runtime::Target& target,
                              std::string_view kind) const {
  return codegen::listing(tools, kernel, target, kind);
}

}  // namespace quern::cpu
