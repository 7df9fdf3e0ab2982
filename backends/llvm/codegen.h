#pragma once
// The LLVM code generator that the CPU, CUDA and ROCm back ends share: a kernel at level `lowered`
// becomes a module with one function per task. What differs between targets stands in Machine.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quern/ir/lower.h"

namespace llvm {
class Attribute;
class Function;
class IRBuilderBase;
class LLVMContext;
class Module;
class Type;
class Value;
}  // namespace llvm

namespace quern::codegen {

/// A thread's place in the grid of a launch, along the only axis: its block and its number in that,
/// the threads of a block (i32), and those of the grid (i64).
struct Grid {
  llvm::Value *block, *thread, *block_threads, *threads;
};

/// How many operations a function of the generated code has (pieces.h). 0: any number.
struct FunctionSizes {
  size_t usual = 0;  ///< it is cut from here on, where few values pass
  size_t whole = 0;  ///< up to here it is not cut where many values pass
  size_t most = 0;   ///< longer code is cut here at the latest, where it can be helped
};

/// What the generator must know of a target; the defaults are those of a CPU.
struct Machine {
  std::string triple;
  std::string data_layout;
  std::vector<std::pair<std::string, std::string>> attributes;  ///< of every function
  unsigned global_space = 0;                                    ///< address space of field memory
  unsigned args_space = 0;   ///< … of the argument block in memory
  unsigned value_space = 0;  ///< … of an argument block that is a parameter
  /// What marks such a parameter, of this type.
  std::function<llvm::Attribute(llvm::LLVMContext&, llvm::Type*)> by_value;
  unsigned slot_space = 0;   ///< … of slots
  std::string atomic_scope;  ///< LLVM's name of the scope of all threads; empty: system
  bool one_thread = false;   ///< tasks run on one thread: atomics on fields are plain updates
  /// The calling thread's place; null: a task function is called once a chunk.
  std::function<Grid(llvm::IRBuilderBase&)> grid;
  /// The i32 that the thread `distance` places on has, of those whose number in the block has the
  /// same quotient by 32; anything where there is none. All threads of the block call it.
  std::function<llvm::Value*(llvm::IRBuilderBase&, llvm::Value* v, unsigned distance)> shuffle_down;
  /// An i1, the same for all that ask this at once: are they all 32 threads of such a row? Null:
  /// updates of one location are left to the target.
  std::function<llvm::Value*(llvm::IRBuilderBase&)> all_here;
  /// An i1 for all threads of such a row, which are here: have they one i64?
  std::function<llvm::Value*(llvm::IRBuilderBase&, llvm::Value* v)> all_alike;
  /// All threads of the block wait for each other, and see each other's writes to shared memory.
  std::function<void(llvm::IRBuilderBase&)> barrier;
  /// A function of one argument that is among TargetTraits::native_math; null for others.
  std::function<llvm::Value*(llvm::IRBuilderBase&, ir::Op, llvm::Value* x)> native;
  bool read_only_loads = false;  ///< memory that a task only reads is worth telling apart
  unsigned shared_space = 3;     ///< address space of a block's shared memory
  /// Width of the registers of vector code; 0: no function is made for it.
  unsigned vector_bits = 0;
  /// Some lanes of a vector are loaded and stored as fast as all of them, whatever their type.
  bool masks = false;
  FunctionSizes function_sizes;
  /// Called for each task's function once it is filled (calling convention, annotations).
  std::function<void(llvm::Function&, const ir::Task&)> finish;
};

/// The module of a kernel, verified by LLVM. Each task is `void task_N(ptr args, i64 chunk,
/// i64 begin, i64 end)`; where Machine::grid is set, `void task_N(ptr args, ptr guard,
/// i64, i64, i64)` with the meaning of runtime::Launch (the last three are runtime::words_of its work,
/// `guard` holds Launch::asks in abi::asks_bit), for any grid: a chunked task takes at least `chunks` threads, a serial one a single thread. Where
/// ir::takes_value holds, `args` is the block itself. Throws InternalError for an operation that
/// lowering should have replaced.
std::unique_ptr<llvm::Module> generate(llvm::LLVMContext& context, const ir::Kernel& kernel,
                                       const Machine& machine, const ir::TargetTraits& traits);

}  // namespace quern::codegen
