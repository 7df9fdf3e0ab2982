#include "backends/llvm/keep_in_memory.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

namespace quern::codegen {

namespace {

/// Shorter blocks are allocated in no time, and better.
constexpr size_t least_size = 500;
/// Registers left for what is computed in between.
constexpr size_t spare = 3;
/// So that LLVM does not make the value that was stored of a load from the stack.
constexpr bool is_volatile = true;
constexpr size_t never = std::numeric_limits<size_t>::max();

/// One block, from its start to its end; what leaves the registers is what is wanted last (Belady, A
/// study of replacement algorithms for a virtual-storage computer, 1966).
class Block {
 public:
  Block(llvm::BasicBlock& block, const llvm::TargetTransformInfo& target)
      : block_(block), layout_(block.getModule()->getDataLayout()) {
    const unsigned kind =
        target.getRegisterClassForType(true, llvm::Type::getFloatTy(block.getContext()));
    registers_ = target.getNumberOfRegisters(kind);
    register_bits_ =
        target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue();
  }

  void run() {
    if (registers_ <= spare || register_bits_ == 0) return;
    number();
    size_t place = 0;
    for (llvm::Instruction* inst : order_) {
      if (!llvm::isa<llvm::PHINode>(inst)) want_operands(*inst, place);
      drop_unused(place);
      if (takes_registers(inst)) leave_all(place);
      if (known_.count(inst)) hold(inst, place);
      place++;
    }
  }

 private:
  struct Known {
    size_t made;
    std::vector<size_t> uses;    ///< their places, in order; `never`: in another block
    size_t next = 0;             ///< of these
    size_t size = 1;             ///< in registers
    llvm::Value* now = nullptr;  ///< what uses take; null: it is in memory
    llvm::AllocaInst* slot = nullptr;
  };
  struct Slot {
    llvm::AllocaInst* memory;
    size_t free_from;
  };

  /// Vectors and floats; masks have registers of their own.
  static bool counts(const llvm::Type* type) {
    if (type->isScalableTy()) return false;
    return type->isFPOrFPVectorTy() || (type->isVectorTy() && type->getScalarSizeInBits() >= 8);
  }

  void number() {
    std::unordered_map<const llvm::Instruction*, size_t> places;
    for (llvm::Instruction& inst : block_) {
      places.emplace(&inst, order_.size());
      order_.push_back(&inst);
    }
    for (llvm::Instruction* inst : order_) {
      if (!counts(inst->getType())) continue;
      Known known{places.at(inst), {}};
      for (const llvm::Use& use : inst->uses()) {
        auto* user = llvm::cast<llvm::Instruction>(use.getUser());
        const bool is_here = user->getParent() == &block_ && !llvm::isa<llvm::PHINode>(user);
        known.uses.push_back(is_here ? places.at(user) : never);
      }
      std::ranges::sort(known.uses);
      const uint64_t bits = layout_.getTypeSizeInBits(inst->getType()).getFixedValue();
      known.size = std::max<size_t>(1, bits / register_bits_);
      known.now = inst;
      known_.emplace(inst, std::move(known));
    }
  }

  void want_operands(llvm::Instruction& inst, size_t place) {
    for (llvm::Use& use : inst.operands()) {
      auto* of = llvm::dyn_cast<llvm::Instruction>(use.get());
      const auto found = of ? known_.find(of) : known_.end();
      if (found == known_.end()) continue;
      Known& known = found->second;
      if (!known.now) {
        llvm::IRBuilder<> b(&inst);
        known.now = b.CreateLoad(of->getType(), known.slot, is_volatile);
        hold(of, place);
      }
      use.set(known.now);
    }
    for (llvm::Use& use : inst.operands())
      for (auto it = held_.begin(); it != held_.end(); ++it) {
        Known& known = known_.at(*it);
        if (known.now == use.get())
          while (known.next < known.uses.size() && known.uses[known.next] <= place) known.next++;
      }
  }

  void drop_unused(size_t place) {
    std::erase_if(held_, [&](llvm::Instruction* v) {
      Known& known = known_.at(v);
      if (known.next < known.uses.size()) return false;
      held_size_ -= known.size;
      if (known.slot) free_.push_back({known.slot, place});
      return true;
    });
  }

  /// From here on it is in registers, and others are not where there is no room.
  void hold(llvm::Instruction* v, size_t place) {
    held_.push_back(v);
    held_size_ += known_.at(v).size;
    while (held_size_ > registers_ - spare) {
      const auto last = std::ranges::max_element(
          held_, {}, [&](llvm::Instruction* h) { return far(known_.at(h), place); });
      if (far(known_.at(*last), place) == 0) return;
      put_away(*last);
      held_.erase(last);
    }
  }

  /// A function that is called keeps none of these registers, if it does not promise to.
  static bool takes_registers(const llvm::Instruction* inst) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(inst);
    return call && !llvm::isa<llvm::IntrinsicInst>(call) &&
           call->getCallingConv() == llvm::CallingConv::C;
  }

  void leave_all(size_t place) {
    std::erase_if(held_, [&](llvm::Instruction* v) {
      const bool leaves = far(known_.at(v), place) > 0;
      if (leaves) put_away(v);
      return leaves;
    });
  }

  /// How far off its next use is; 0: it stays. What other blocks use stays for them.
  static size_t far(const Known& known, size_t place) {
    if (known.next == known.uses.size() || known.uses.back() == never) return 0;
    return known.uses[known.next] - std::min(place, known.uses[known.next]);
  }

  void put_away(llvm::Instruction* v) {
    Known& known = known_.at(v);
    held_size_ -= known.size;
    known.now = nullptr;
    if (known.slot) return;
    known.slot = slot(v->getType(), known.made);
    auto* behind = llvm::isa<llvm::PHINode>(v) ? block_.getFirstNonPHI() : v->getNextNode();
    llvm::IRBuilder<>(behind).CreateStore(v, known.slot, is_volatile);
  }

  /// One that nobody has used since `place`.
  llvm::AllocaInst* slot(llvm::Type* type, size_t place) {
    const auto found = std::ranges::find_if(free_, [&](const Slot& slot) {
      return slot.memory->getAllocatedType() == type && slot.free_from <= place;
    });
    if (found != free_.end()) {
      llvm::AllocaInst* memory = found->memory;
      free_.erase(found);
      return memory;
    }
    llvm::BasicBlock& entry = block_.getParent()->getEntryBlock();
    return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
  }

  llvm::BasicBlock& block_;
  const llvm::DataLayout& layout_;
  size_t registers_ = 0;
  uint64_t register_bits_ = 0;
  std::vector<llvm::Instruction*> order_;
  std::unordered_map<llvm::Instruction*, Known> known_;
  std::vector<llvm::Instruction*> held_;
  size_t held_size_ = 0;
  std::vector<Slot> free_;
};

}  // namespace

void keep_far_values_in_memory(llvm::Module& module, const llvm::TargetMachine& machine) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    const llvm::TargetTransformInfo target = machine.getTargetTransformInfo(function);
    for (llvm::BasicBlock& block : function)
      if (block.size() >= least_size) Block(block, target).run();
  }
}

}  // namespace quern::codegen
