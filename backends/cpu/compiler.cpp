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

codegen::Machine describe(const codegen::Isa& isa, const llvm::TargetMachine& machine) {
  codegen::Machine out = codegen::machine_of(isa, machine);
  if (isa.features.find("+avx512f") != std::string::npos)
    out.attributes.push_back({"prefer-vector-width", "512"});
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
