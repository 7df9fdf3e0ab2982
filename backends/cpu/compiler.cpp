#include "backends/cpu/compiler.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <mutex>

#include "backends/llvm/codegen.h"
#include "backends/llvm/guard.h"
#include "quern/error.h"
#include "quern/ir/text.h"

namespace quern::cpu {

namespace {

struct Isa {
  std::string triple, cpu, features;
};

Isa parse(const std::string& text) {
  size_t first = text.find(' '), second = text.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    throw InternalError("'" + text + "' is not a CPU target (triple cpu features)");
  return {text.substr(0, first), text.substr(first + 1, second - first - 1),
          text.substr(second + 1)};
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Isa& isa) {
  static const bool ready = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)ready;
  std::string why;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(isa.triple, why);
  if (!target) throw InternalError(why);
  llvm::TargetOptions options;
#if LLVM_VERSION_MAJOR >= 21
  llvm::Triple triple(isa.triple);
#else
  const std::string& triple = isa.triple;
#endif
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, isa.cpu, isa.features, options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive, true));
}

/// Target machines are costly to make and serve one thread at a time: kept for the next use.
class MachinePool {
 public:
  std::unique_ptr<llvm::TargetMachine> take(const std::string& isa) {
    {
      std::lock_guard lock(mutex_);
      for (auto& entry : idle_) {
        if (entry.isa != isa) continue;
        auto machine = std::move(entry.machine);
        std::swap(entry, idle_.back());
        idle_.pop_back();
        return machine;
      }
    }
    return make_machine(parse(isa));
  }
  void give(const std::string& isa, std::unique_ptr<llvm::TargetMachine> machine) {
    std::lock_guard lock(mutex_);
    idle_.push_back({isa, std::move(machine)});
  }

 private:
  struct Entry {
    std::string isa;
    std::unique_ptr<llvm::TargetMachine> machine;
  };
  std::mutex mutex_;
  std::vector<Entry> idle_;
};

MachinePool& pool() {
  static MachinePool machines;
  return machines;
}

codegen::Machine describe(const Isa& isa, const llvm::TargetMachine& machine) {
  codegen::Machine out;
  out.triple = isa.triple;
  out.data_layout = machine.createDataLayout().getStringRepresentation();
  out.attributes = {{"target-cpu", isa.cpu}, {"target-features", isa.features}};
  if (isa.features.find("+avx512f") != std::string::npos)
    out.attributes.push_back({"prefer-vector-width", "512"});
  return out;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.LoopInterleaving = true;
  tuning.SLPVectorization = false;  // dear: 1,000 operations take 144 ms with it, 38 without
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

void emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
          llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    throw InternalError("LLVM cannot emit code for " + module.getTargetTriple());
  passes.run(module);
}

void on_diagnostic(const llvm::DiagnosticInfo* info, void* text) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream stream(*static_cast<std::string*>(text));
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
}

/// Makes the module of a kernel and hands it to `use`, under LLVM's guard.
void with_module(const ir::Kernel& kernel, const runtime::Target& target,
                 const std::function<void(llvm::Module&, llvm::TargetMachine&)>& use) {
  std::string errors;
  std::unique_ptr<llvm::TargetMachine> machine = pool().take(target.isa);
  // Released only where LLVM comes back: after a crash inside it the machine is not to be trusted.
  llvm::TargetMachine* in_use = machine.release();
  codegen::guarded("compiling kernel '" + kernel.name + "'", [&] {
    llvm::LLVMContext context;
    context.setDiagnosticHandlerCallBack(on_diagnostic, &errors, true);
    auto module = codegen::generate(context, kernel, describe(parse(target.isa), *in_use));
    use(*module, *in_use);
  });
  pool().give(target.isa, std::unique_ptr<llvm::TargetMachine>(in_use));
  if (!errors.empty()) throw InternalError("LLVM refuses kernel '" + kernel.name + "': " + errors);
}

/// Local arrays live on the stacks of the threads.
constexpr uint64_t max_local_bytes = 1 << 20;

void refuse_large_locals(const ir::Kernel& kernel) {
  for (const ir::Task& task : kernel.tasks) {
    uint64_t bytes = 0;
    ir::walk(task.body, [&](const ir::Inst* inst) {
      if (!inst->is(ir::Op::slot)) return;
      bytes += inst->imm * ir::byte_size(inst->elem);
      if (bytes > max_local_bytes)
        throw Error(inst->loc, "the local arrays of a loop take " + std::to_string(bytes) +
                                   " bytes; the cpu back end has room for " +
                                   std::to_string(max_local_bytes) + ": use a field");
    });
  }
}

}  // namespace

runtime::Image Compiler::compile(const ir::Kernel& kernel, const runtime::Target& target) const {
  refuse_large_locals(kernel);
  runtime::Image image;
  with_module(kernel, target, [&](llvm::Module& module, llvm::TargetMachine& machine) {
    optimise(module, machine);
    llvm::SmallVector<char, 0> object;
    emit(module, machine, llvm::CodeGenFileType::ObjectFile, object);
    auto* bytes = reinterpret_cast<const std::byte*>(object.data());
    image.code.assign(bytes, bytes + object.size());
  });
  return image;
}

std::string Compiler::listing(const ir::Kernel& kernel, const runtime::Target& target,
                              std::string_view kind) const {
  if (kind == "ir") return ir::print(kernel);
  if (kind != "llvm" && kind != "llvm-optimised" && kind != "asm")
    throw Error("the cpu back end has no listing '" + std::string(kind) +
                "'; it has ir, llvm, llvm-optimised, asm");
  std::string text;
  with_module(kernel, target, [&](llvm::Module& module, llvm::TargetMachine& machine) {
    if (kind != "llvm") optimise(module, machine);
    llvm::SmallString<0> out;
    if (kind == "asm") {
      emit(module, machine, llvm::CodeGenFileType::AssemblyFile, out);
    } else {
      llvm::raw_svector_ostream stream(out);
      module.print(stream, nullptr);
    }
    text = out.str().str();
  });
  return text;
}

}  // namespace quern::cpu
