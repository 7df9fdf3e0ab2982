#pragma once
// The LLVM code generator that the CPU, CUDA and ROCm back ends share: a kernel at level `lowered`
// becomes a module with one function per task. What differs between targets stands in Machine.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quern/ir/ir.h"

namespace llvm {
class Function;
class IRBuilderBase;
class LLVMContext;
class Module;
class Value;
}  // namespace llvm

namespace quern::codegen {

/// What the generator must know of a target; the defaults are those of a CPU.
struct Machine {
  std::string triple;
  std::string data_layout;
  std::vector<std::pair<std::string, std::string>> attributes;  ///< of every function
  unsigned global_space = 0;                                    ///< address space of field memory
  unsigned args_space = 0;                                      ///< … of the argument block
  unsigned slot_space = 0;                                      ///< … of slots
  std::string atomic_scope;  ///< LLVM's name of the scope of all threads; empty: system
  /// The value of a builtin inside a task function; null: parameters 1… hold chunk, begin, end.
  std::function<llvm::Value*(llvm::IRBuilderBase&, ir::Builtin)> builtin;
  /// Called for each task's function once it is filled (calling convention, annotations).
  std::function<void(llvm::Function&, const ir::Task&)> finish;
};

/// Name of the function of task `task`.
std::string task_symbol(size_t task);

/// The module of a kernel, verified by LLVM. Each task is `void task_N(ptr args, i64 chunk,
/// i64 begin, i64 end)`; where Machine::builtin is set, `void task_N(ptr args, i64 end)`. Throws
/// InternalError for an operation that lowering should have replaced.
std::unique_ptr<llvm::Module> generate(llvm::LLVMContext& context, const ir::Kernel& kernel,
                                       const Machine& machine);

}  // namespace quern::codegen
