#include "backends/llvm/toolchain.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/LowerSwitch.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_map>

#include "backends/llvm/guard.h"
#include "backends/llvm/hoist_divisions.h"
#include "backends/llvm/split_blocks.h"
#include "backends/llvm/vector_functions.h"
#include "backends/llvm/whole_lanes.h"
#include "quern/error.h"
#include "quern/ir/text.h"

namespace quern::codegen {

Isa Isa::parse(const std::string& text) {
  size_t first = text.find(' '), second = text.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos)
    throw InternalError("'" + text + "' is not a target of LLVM's (triple cpu features)");
  return {text.substr(0, first), text.substr(first + 1, second - first - 1),
          text.substr(second + 1)};
}

Machine machine_of(const Isa& isa, const llvm::TargetMachine& machine) {
  Machine out;
  out.triple = isa.triple;
  out.data_layout = machine.createDataLayout().getStringRepresentation();
  out.attributes = {{"target-cpu", isa.cpu}, {"target-features", isa.features}};
  return out;
}

namespace {

using Use = std::function<void(llvm::Module&, llvm::TargetMachine&)>;

std::unique_ptr<llvm::TargetMachine> make_machine(const Isa& isa) {
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
  std::unique_ptr<llvm::TargetMachine> take(const Toolchain& tools, const std::string& isa) {
    {
      std::lock_guard lock(mutex_);
      if (initialised_.insert(&tools).second) tools.initialise();
      for (auto& entry : idle_) {
        if (entry.isa != isa) continue;
        auto machine = std::move(entry.machine);
        std::swap(entry, idle_.back());
        idle_.pop_back();
        return machine;
      }
    }
    return make_machine(Isa::parse(isa));
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
  std::set<const Toolchain*> initialised_;
  std::vector<Entry> idle_;
};

MachinePool& pool() {
  static MachinePool machines;
  return machines;
}

/// Passes that find little in what is long and has been optimised as a kernel, and take a tenth of
/// the time; the first of them takes cubic time over comparisons.
constexpr llvm::StringLiteral not_of_long_code[] = {"Float2IntPass",
                                                    "GVNPass",
                                                    "CalledValuePropagationPass",
                                                    "IPSCCPPass",
                                                    "SCCPPass",
                                                    "BDCEPass",
                                                    "CorrelatedValuePropagationPass",
                                                    "ConstraintEliminationPass",
                                                    "DSEPass",
                                                    "JumpThreadingPass",
                                                    "AggressiveInstCombinePass",
                                                    "CallSiteSplittingPass"};

/// LLVM combines instructions eight times, each time in a few hundredths of what long code takes in
/// all. What it finds in that it finds at first, and most of the rest as it chooses instructions.
constexpr int combines_of_long_code = 2;

void optimise(llvm::Module& module, llvm::TargetMachine& machine, const Toolchain& tools) {
  const bool vectorise = tools.vectorise;
  prepare_for(tools.sanitizer, module);
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = vectorise;
  tuning.LoopInterleaving = vectorise;
  tuning.SLPVectorization = false;  // dear: 1,000 operations take 144 ms with it, 38 without
  llvm::PassInstrumentationCallbacks callbacks;
  const bool is_long = has_long_blocks(module);
  std::unordered_map<const llvm::Function*, int> combined;
  callbacks.registerShouldRunOptionalPassCallback([&](llvm::StringRef name, llvm::Any of) {
    if (!is_long) return true;
    if (name == "InstCombinePass")
      if (const auto* function = llvm::any_cast<const llvm::Function*>(&of))
        return combined[*function]++ < combines_of_long_code;
    return std::ranges::find(not_of_long_code, name) == std::end(not_of_long_code);
  });
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  // Chains of comparisons have become switches, with which a loop does not vectorise; and divisions may
  // have moved to where they are vectorised wrongly.
  builder.registerVectorizerStartEPCallback(
      [&](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) {
        if (!vectorise) return;
        passes.addPass(llvm::LowerSwitchPass());
        passes.addPass(HoistDivisions());
      });
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
  drop_unused_vector_functions(module);
  access_whole_lanes(module);
  if (tools.long_code) keep_far_values_in_memory(module, machine, *tools.long_code);
  instrument_for(tools.sanitizer, module);
  if (tools.mend) tools.mend(module);
}

/// LLVM has these choices as options of the process only, and looks at them when it makes a list of
/// passes: made so, one at a time.
bool add_passes(llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& out,
                llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                std::span<const char* const> off) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  auto& options = llvm::cl::getRegisteredOptions();
  std::vector<llvm::cl::opt<bool>*> set;
  for (const char* name : off) {
    const auto found = options.find(name);
    auto* one = found == options.end() ? nullptr : static_cast<llvm::cl::opt<bool>*>(found->second);
    if (one && !*one) set.push_back(one);
  }
  for (auto* one : set) one->setValue(true);
  const bool failed = machine.addPassesToEmitFile(passes, out, nullptr, type);
  for (auto* one : set) one->setValue(false);
  return !failed;
}

llvm::SmallString<0> emit(llvm::Module& module, llvm::TargetMachine& machine,
                          llvm::CodeGenFileType type, const Toolchain& tools) {
  std::vector<const char*> off;
  if (!tools.reduce_strength) off.push_back("disable-lsr");
  if (tools.vectorise && has_long_blocks(module)) {
    split_long_blocks(module);
    off.push_back("disable-cgp");      // joins blocks
    off.push_back("disable-post-ra");  // takes quadratic time; CPUs reorder what is left
  }
  llvm::SmallString<0> out;
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  if (!add_passes(passes, stream, machine, type, off))
    throw InternalError("LLVM cannot emit code for " + machine.getTargetTriple().str());
  passes.run(module);
  return out;
}

void on_diagnostic(const llvm::DiagnosticInfo* info, void* text) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream stream(*static_cast<std::string*>(text));
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
}

/// Makes the module of a kernel and hands it to `use`, under LLVM's guard.
void with_module(const Toolchain& tools, const ir::Kernel& kernel, const runtime::Target& target,
                 const Use& use) {
  const std::string isa = tools.isa ? tools.isa(target.isa) : target.isa;
  std::string errors;
  // Nobody's where LLVM does not come back: after a crash inside it the machine is not trusted.
  llvm::TargetMachine* taken = pool().take(tools, isa).release();
  guarded("compiling kernel '" + kernel.name + "'", [&] {
    std::unique_ptr<llvm::TargetMachine> machine(taken);
    llvm::LLVMContext context;
    context.setDiagnosticHandlerCallBack(on_diagnostic, &errors, true);
    Machine description = tools.describe(Isa::parse(isa), *machine);
    description.one_thread = !description.grid && target.workers == 1;
    auto module = generate(context, kernel, description, target.traits);
    use(*module, *machine);
    pool().give(isa, std::move(machine));
  });
  if (!errors.empty()) throw InternalError("LLVM refuses kernel '" + kernel.name + "': " + errors);
}

void refuse_large_locals(const Toolchain& tools, const ir::Kernel& kernel) {
  for (const ir::Task& task : kernel.tasks) {
    uint64_t bytes = 0;
    ir::walk(task.body, [&](const ir::Inst* inst) {
      if (!inst->is(ir::Op::slot)) return;
      bytes += inst->imm * ir::byte_size(inst->elem);
      if (bytes > tools.max_local_bytes)
        throw Error(inst->loc, "the local arrays of a loop take " + std::to_string(bytes) +
                                   " bytes; the " + tools.backend + " back end has room for " +
                                   std::to_string(tools.max_local_bytes) + ": use a field");
    });
  }
}

}  // namespace

std::vector<std::byte> Compiler::code(const ir::Kernel& kernel,
                                      const runtime::Target& target) const {
  refuse_large_locals(tools_, kernel);
  std::vector<std::byte> code;
  with_module(tools_, kernel, target, [&](llvm::Module& module, llvm::TargetMachine& machine) {
    optimise(module, machine, tools_);
    auto out =
        emit(module, machine,
             tools_.text ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile,
             tools_);
    auto bytes = std::as_bytes(std::span(out.data(), out.size()));
    code.assign(bytes.begin(), bytes.end());
  });
  return tools_.link ? tools_.link(code, kernel.name) : code;
}

std::string Compiler::listing(const ir::Kernel& kernel, const runtime::Target& target,
                              std::string_view kind) const {
  if (kind == "ir") return ir::print(kernel);
  if (kind != "llvm" && kind != "llvm-optimised" && kind != tools_.assembly)
    throw Error("the " + tools_.backend + " back end has no listing '" + std::string(kind) +
                "'; it has ir, llvm, llvm-optimised, " + tools_.assembly);
  std::string text;
  with_module(tools_, kernel, target, [&](llvm::Module& module, llvm::TargetMachine& machine) {
    if (kind != "llvm") optimise(module, machine, tools_);
    if (kind == tools_.assembly) {
      auto out = emit(module, machine, llvm::CodeGenFileType::AssemblyFile, tools_);
      text = out.str().str();
    } else {
      llvm::raw_string_ostream stream(text);
      module.print(stream, nullptr);
    }
  });
  return text;
}

std::string Compiler::version() const {
  const std::string llvm = "LLVM " LLVM_VERSION_STRING;
  return tools_.besides ? llvm + " " + tools_.besides() : llvm;
}

}  // namespace quern::codegen
