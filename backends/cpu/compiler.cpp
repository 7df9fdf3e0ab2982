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
  codegen::Machine out;
  out.triple = isa.triple;
  out.data_layout = machine.createDataLayout().getStringRepresentation();
  out.attributes = {{"target-cpu", isa.cpu}, {"target-features", isa.features}};
  if (isa.features.find("+avx512f") != std::string::npos)
    out.attributes.push_back({"prefer-vector-width", "512"});
  return out;
}

const codegen::Toolchain tools = {"cpu", initialise, describe, true, "asm"};

/// Local arrays live on the stacks of the threads.
constexpr uint64_t max_local_bytes = 1 << 20;

}  // namespace

runtime::Image Compiler::compile(const ir::Kernel& kernel, const runtime::Target& target) const {
  codegen::refuse_large_locals(tools, kernel, max_local_bytes);
  return {codegen::compile(tools, kernel, target, false)};
}

std::string Compiler::listing(const ir::Kernel& kernel, const runtime::Target& target,
                              std::string_view kind) const {
  return codegen::listing(tools, kernel, target, kind);
}

}  // namespace quern::cpu
