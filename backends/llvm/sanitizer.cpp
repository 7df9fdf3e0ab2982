#include "backends/llvm/sanitizer.h"

#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Instrumentation/AddressSanitizer.h>
#include <llvm/Transforms/Instrumentation/ThreadSanitizer.h>

#include <string>

#include "quern/error.h"

namespace quern::codegen {

namespace {
/// Those of kernels are tables of constants, and nobody runs what would tell the sanitizer's runtime
/// of a module's globals. LLVM has this choice as an option of the process only.
void leave_globals_out() {
  static const bool done = [] {
    auto& options = llvm::cl::getRegisteredOptions();
    auto found = options.find("asan-globals");
    if (found == options.end()) return false;
    static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(false);
    return true;
  }();
  if (!done) throw InternalError("LLVM's address sanitizer has no option asan-globals");
}
}  // namespace

void prepare_for(Sanitizer sanitizer, llvm::Module& module) {
  if (sanitizer == Sanitizer::none) return;
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("frame-pointer", "all");
    f.addFnAttr(sanitizer == Sanitizer::address ? llvm::Attribute::SanitizeAddress
                                                : llvm::Attribute::SanitizeThread);
  }
}

void instrument_for(Sanitizer sanitizer, llvm::Module& module) {
  if (sanitizer == Sanitizer::none) return;
  llvm::ModulePassManager passes;
  if (sanitizer == Sanitizer::address) {
    leave_globals_out();
    llvm::AddressSanitizerOptions options;
    options.UseAfterReturn = llvm::AsanDetectStackUseAfterReturnMode::Never;  // no slot outlives it
    options.InsertVersionCheck = false;
    passes.addPass(llvm::AddressSanitizerPass(options, true, true, llvm::AsanDtorKind::None,
                                              llvm::AsanCtorKind::None));
  } else {
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
  }
  llvm::PassBuilder builder;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  passes.run(module, modules);
  // The runtime of g++ 12 has these only by the names that it takes over from the C library.
  for (const char* name : {"memcpy", "memmove", "memset"})
    if (llvm::Function* own = module.getFunction(std::string("__tsan_") + name))
      own->replaceAllUsesWith(module.getOrInsertFunction(name, own->getFunctionType()).getCallee());
}

}  // namespace quern::codegen
