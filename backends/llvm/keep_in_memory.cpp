#include "backends/llvm/keep_in_memory.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <limits>
#include <optional>
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

/// A function's memory for values: one array.
class Frame {
 public:
  Frame(llvm::Function& function, const Registers& registers) {
    llvm::BasicBlock& entry = function.getEntryBlock();
    llvm::IRBuilder<> b(&entry, entry.begin());
    memory_ = b.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), 0));
    start_ = memory_;
    if (registers.memory_space != 0)
      start_ = b.CreateAddrSpaceCast(memory_, b.getPtrTy(registers.memory_space));
    if (registers.hidden_zero)
      start_ = b.CreateGEP(b.getInt8Ty(), start_, registers.hidden_zero(b));
  }
  /// The array gets the size of what was added, or goes.
  void finish() {
    auto* byte = llvm::Type::getInt8Ty(memory_->getContext());
    memory_->setAllocatedType(llvm::ArrayType::get(byte, bytes_));
    memory_->setAlignment(alignment_);
    if (bytes_ == 0) llvm::RecursivelyDeleteTriviallyDeadInstructions(start_);
  }

  /// Where a value of the type lies, in bytes from the start.
  uint64_t add(llvm::Type* type) {
    const llvm::Align align = alignment(type);
    const uint64_t at = llvm::alignTo(bytes_, align);
    alignment_ = std::max(alignment_, align);
    bytes_ = at + align.value();
    return at;
  }
  void store(llvm::IRBuilder<> b, llvm::Value* v, uint64_t at) const {
    b.CreateAlignedStore(v, place(b, at), alignment(v->getType()), is_volatile);
  }
  llvm::Value* load(llvm::IRBuilder<> b, llvm::Type* type, uint64_t at) const {
    return b.CreateAlignedLoad(type, place(b, at), alignment(type), is_volatile);
  }

 private:
  llvm::Value* place(llvm::IRBuilder<>& b, uint64_t at) const {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), start_, at);
  }
  llvm::Align alignment(llvm::Type* type) const {
    const llvm::DataLayout& layout = memory_->getModule()->getDataLayout();
    return llvm::Align(llvm::PowerOf2Ceil(layout.getTypeAllocSize(type).getFixedValue()));
  }

  llvm::AllocaInst* memory_;
  llvm::Value* start_;
  uint64_t bytes_ = 0;
  llvm::Align alignment_;
};

/// One block, from its start to its end; what leaves the registers is what is wanted last (Belady, A
/// study of replacement algorithms for a virtual-storage computer, 1966).
class Block {
 public:
  Block(llvm::BasicBlock& block, const Registers& registers, Frame& frame)
      : block_(block),
        layout_(block.getModule()->getDataLayout()),
        registers_(registers),
        frame_(frame) {}

  void run() {
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
    std::optional<uint64_t> slot = std::nullopt;  ///< where it lies in the frame
  };
  struct Slot {
    uint64_t at;
    llvm::Type* type;
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
      known.size = std::max<size_t>(1, bits / registers_.bits);
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
        known.now = frame_.load(llvm::IRBuilder<>(&inst), of->getType(), *known.slot);
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
      if (known.slot) free_.push_back({*known.slot, v->getType(), place});
      return true;
    });
  }

  /// From here on it is in registers, and others are not where there is no room.
  void hold(llvm::Instruction* v, size_t place) {
    held_.push_back(v);
    held_size_ += known_.at(v).size;
    while (held_size_ > registers_.count - spare) {
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
    frame_.store(llvm::IRBuilder<>(behind), v, *known.slot);
  }

  /// One that nobody has used since `place`.
  uint64_t slot(llvm::Type* type, size_t place) {
    const auto found = std::ranges::find_if(
        free_, [&](const Slot& slot) { return slot.type == type && slot.free_from <= place; });
    if (found == free_.end()) return frame_.add(type);
    const uint64_t at = found->at;
    free_.erase(found);
    return at;
  }

  llvm::BasicBlock& block_;
  const llvm::DataLayout& layout_;
  const Registers& registers_;
  Frame& frame_;
  std::vector<llvm::Instruction*> order_;
  std::unordered_map<llvm::Instruction*, Known> known_;
  std::vector<llvm::Instruction*> held_;
  size_t held_size_ = 0;
  std::vector<Slot> free_;
};

/// As LLVM knows them.
Registers registers_of(const llvm::TargetTransformInfo& target, llvm::LLVMContext& context) {
  const unsigned kind = target.getRegisterClassForType(true, llvm::Type::getFloatTy(context));
  return {
      target.getNumberOfRegisters(kind),
      target.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue()};
}

}  // namespace

void keep_far_values_in_memory(llvm::Module& module, const llvm::TargetMachine& machine,
                               const Registers& registers) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    const Registers known =
        registers.count > 0
            ? registers
            : registers_of(machine.getTargetTransformInfo(function), module.getContext());
    if (known.count <= spare || known.bits == 0) continue;
    std::vector<llvm::BasicBlock*> long_ones;
    for (llvm::BasicBlock& block : function)
      if (block.size() >= least_size) long_ones.push_back(&block);
    if (long_ones.empty()) continue;
    Frame frame(function, known);
    for (llvm::BasicBlock* block : long_ones) Block(*block, known, frame).run();
    frame.finish();
  }
}

}  // namespace quern::codegen
