#pragma once
// Emits the regions of one function at a time: straight code in emitter.cpp, control in
// structure.cpp.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/llvm/codegen.h"
#include "backends/llvm/memory.h"
#include "backends/llvm/pieces.h"
#include "ir/analysis/divergence.h"

namespace quern::codegen {

/// What LLVM is told of a loop, which ends. Where `group` is given its accesses of different iterations
/// do not depend on one another (or race, and then any order will do). 0: as LLVM likes.
struct LoopFacts {
  llvm::MDNode* group = nullptr;
  unsigned width = 0;       ///< lanes at a time
  unsigned interleave = 0;  ///< vectors at a time
  unsigned unroll = 0;      ///< rounds behind each other
  bool masks = false;       ///< the last vector has fewer lanes, if LLVM can do that
};

class Emitter {
 public:
  /// `callees` are the functions of the kernel's callees, in order.
  Emitter(llvm::Module& module, const ir::Kernel& kernel, const Machine& machine,
          const std::vector<llvm::Function*>& callees);

  void task(llvm::Function* function, const ir::Task& task);
  void callee(llvm::Function* function, const ir::Function& f);
  /// A function that computes `function`, which is that of `f`, for vectors of its arguments.
  void vector_function(llvm::Function* function, const ir::Function& f, unsigned count);

 private:
  using Values = std::vector<llvm::Value*>;
  struct Slot {
    llvm::AllocaInst* memory;
    llvm::Type* elem;
  };
  /// A running fmin or fmax as an integer of the same order (see emit_key): LLVM vectorises the
  /// minimum of integers.
  struct Key {
    ir::Op op;
    llvm::Value* value;
  };

  // emitter.cpp
  void start(llvm::Function* function, const ir::Region* body);
  llvm::BasicBlock* block(const char* name);
  llvm::Type* type(ir::Type t);
  llvm::Value* value(const ir::Value* v);
  Values operands(const ir::Inst& inst, size_t from = 0);
  /// Emits a region at the insertion point; the values of its terminator come back.
  Values region(const ir::Region* r);
  void statements(const ir::Region* r);
  void emit(const ir::Inst& inst);
  llvm::Value* single(const ir::Inst& inst);
  llvm::Value* builtin(ir::Builtin which);
  void enter_chunk();
  void enter_thread(const ir::Task& task);
  llvm::Value* pass_guard(llvm::Value* guard);

  // block.cpp
  llvm::Value* block_reduce(const ir::Inst& inst);
  llvm::Value* shuffle_down(llvm::Value* v, unsigned distance);
  llvm::Value* halved(ir::AtomicOp op, ir::Type type, llvm::Value* v);
  bool is_met(const ir::Inst& inst);
  void update_together(const ir::Inst& inst);
  llvm::GlobalVariable* block_values(int number);
  int reductions_ = 0;                        ///< of blocks, in the function so far
  int met_ = 0;                               ///< updates of rows of threads, likewise
  std::optional<ir::Divergence> divergence_;  ///< of the task, once it is asked for

  void return_unless(llvm::Value* condition);
  llvm::Value* offset(llvm::Value* address, llvm::Value* bytes);
  void call(const ir::Inst& inst);
  llvm::Type* slot_type(ir::Type t);
  void slot(const ir::Inst& inst);
  llvm::Value* slot_place(const ir::Inst& inst, bool indexed);
  llvm::Value* get(const ir::Inst& inst);
  void put(const ir::Inst& inst);

  // vector_functions.cpp
  void usual_side(const ir::Inst& inst);

  // structure.cpp
  void if_else(const ir::Inst& inst);
  void any_loop(const ir::Inst& inst);
  bool sums_up(const ir::Inst& loop) const;
  bool is_for_vectors(const ir::Inst& loop) const;
  bool ends_apart(const ir::Inst& loop) const;
  void counted_loop(const ir::Inst& inst);
  void hold(const ir::Inst& loop, size_t k, const ir::Value* v, llvm::Value* held);
  enum class Rounds { all, whole_vectors, rest };
  Values rounds(const ir::Inst& inst, llvm::Value* lo, llvm::Value* hi, const Values& init,
                Rounds which);
  void while_loop(const ir::Inst& inst);
  static unsigned rounds_together(const ir::Region* body);
  size_t called(const ir::Inst* inst) const;
  size_t operations_of(const ir::Region* body) const;
  unsigned lanes_of(const ir::Inst& loop) const;
  unsigned most_lanes(const ir::Inst& loop) const;
  static std::unordered_set<const ir::Value*> shared_slots(const ir::Region* body);
  void in_group(llvm::Instruction* access, const ir::Value* slot);
  LoopFacts facts_of(const ir::Inst& inst, llvm::Value* lo, llvm::Value* hi, Rounds which,
                     llvm::MDNode* group) const;
  llvm::MDNode* metadata_of(const LoopFacts& facts);
  llvm::Value* key_of(const ir::Value* v, ir::Op op);
  void set_key(const ir::Value* v, Key key);
  bool extreme_step(const ir::Inst& inst);

  llvm::LLVMContext& context_;
  const ir::Kernel& kernel_;
  const Machine& machine_;
  const std::vector<llvm::Function*>& callees_;
  Memory memory_;
  Pieces pieces_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  const ir::Task* task_ = nullptr;  ///< null: it is no task's
  llvm::BasicBlock* entry_ = nullptr;
  std::map<ir::Builtin, llvm::Value*> builtins_;  ///< of the task
  Grid grid_{};                                   ///< where Machine::grid is set
  bool brief_ = false;                            ///< inside a loop that is to be compiled fast
  const ir::Region* in_vector_ = nullptr;         ///< body whose rare branches are not taken …
  Values rare_;                                   ///< … and the conditions on which they would be
  std::unordered_map<const ir::Value*, llvm::Value*> values_;
  std::unordered_map<const ir::Value*, Key> keys_;
  std::unordered_map<const ir::Value*, Slot> slots_;
  std::unordered_set<const ir::Value*> shared_;  ///< slots that rounds of the walk at hand share
};

}  // namespace quern::codegen
