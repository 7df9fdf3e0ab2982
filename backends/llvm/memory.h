#pragma once
// Reads, writes and atomics of addresses, and what is known of their overlap.
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <set>
#include <span>

#include "backends/llvm/codegen.h"

namespace quern::codegen {

class Memory {
 public:
  Memory(llvm::LLVMContext& context, const Machine& machine, const ir::Kernel& kernel);

  /// Collects the alias classes of a task; before anything of it is emitted.
  void begin_task(const ir::Region* body);
  /// Accesses made from here on belong to `group` (a parallel loop's), or to none where null.
  void set_group(llvm::MDNode* group) { group_ = group; }
  /// Of the task that has begun: an i1, do its iterations run one after another?
  void set_alone(llvm::Value* alone) { alone_ = alone; }
  /// Are there updates, and all of them plain?
  bool updates_plainly(const ir::Region* body) const;
  llvm::MDNode* group() const { return group_; }
  /// Does the task that has begun look at what the update may change, by reads or by old values?
  bool is_seen(const ir::Inst& update) const;

  llvm::Value* read(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address);
  void write(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address, llvm::Value* v);
  /// `values` are the operands after the address; the old value comes back.
  llvm::Value* rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address,
                   std::span<llvm::Value* const> values);
  /// An entry of the argument block: the same through the whole task.
  llvm::Value* argument(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* args);

 private:
  struct Scopes {
    llvm::MDNode *scope = nullptr, *noalias = nullptr;
    bool written = false;  ///< by the task, itself or something that may overlap it
    bool read = false;     ///< likewise
  };
  void annotate(llvm::Instruction* access, uint64_t alias_class);
  llvm::Type* stored(ir::Type type);
  llvm::Value* loaded(llvm::IRBuilderBase& b, llvm::Value* v, ir::Type type);
  llvm::Value* compare_and_swap(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address,
                                llvm::Value* expected, llvm::Value* desired);
  llvm::Value* loop_rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address,
                        llvm::Value* v);
  /// Is the atomic a loop around a compare-and-swap in machine code?
  bool is_alone(const ir::Inst& inst) const;
  bool becomes_loop(const ir::Inst& inst) const;
  /// The old value, by a call of a function of the module's that does nothing else.
  llvm::Value* call_rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address,
                        llvm::Value* v);
  llvm::Value* emit_rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address,
                        llvm::Value* v);
  /// The atomic, or a plain update where iterations run one after another.
  llvm::Value* rmw_unless(llvm::IRBuilderBase& b, llvm::Value* alone, const ir::Inst& inst,
                          llvm::Value* address, std::span<llvm::Value* const> values);
  llvm::Value* shared_rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address,
                          std::span<llvm::Value* const> values);
  llvm::Value* plain_update(llvm::IRBuilderBase& b, const ir::Inst& inst, llvm::Value* address,
                            std::span<llvm::Value* const> values);
  llvm::SyncScope::ID scope();

  llvm::LLVMContext& context_;
  const Machine& machine_;
  const ir::Kernel& kernel_;
  std::map<uint64_t, Scopes> classes_;
  /// Entries of the argument block that are multiples of more than one, by offset.
  std::map<uint64_t, uint32_t> alignments_;
  std::set<uint64_t> copies_;  ///< alias classes of what a chunk has for itself
  llvm::MDNode* group_ = nullptr;
  llvm::Value* alone_ = nullptr;
  bool calls_rmw_ = false;    ///< the task has so many loops of atomics that each is a call
  bool has_few_rmw_ = false;  ///< … so few updates of fields that each may be there twice
};

}  // namespace quern::codegen
