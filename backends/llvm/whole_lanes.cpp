#include "backends/llvm/whole_lanes.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

#include <optional>
#include <vector>

namespace quern::codegen {

namespace {

constexpr const char* of_strip = "quern.of_strip";

/// A load or a store with a mask.
struct Masked {
  llvm::IntrinsicInst* inst = nullptr;
  llvm::Value *place = nullptr, *mask = nullptr;
  llvm::FixedVectorType* type = nullptr;

  static std::optional<Masked> of(llvm::Instruction& inst) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst);
    if (!call) return std::nullopt;
    Masked made{call};
    if (call->getIntrinsicID() == llvm::Intrinsic::masked_load) {
      if (!llvm::isa<llvm::UndefValue>(call->getArgOperand(3))) return std::nullopt;
      made.place = call->getArgOperand(0);
      made.mask = call->getArgOperand(2);
      made.type = llvm::dyn_cast<llvm::FixedVectorType>(call->getType());
    } else if (call->getIntrinsicID() == llvm::Intrinsic::masked_store) {
      made.place = call->getArgOperand(1);
      made.mask = call->getArgOperand(3);
      made.type = llvm::dyn_cast<llvm::FixedVectorType>(call->getArgOperand(0)->getType());
    }
    if (!made.type) return std::nullopt;
    return made;
  }

  unsigned lanes() const { return type->getNumElements(); }
};

/// 0, 1, 2 and so on.
bool is_step_vector(const llvm::Value* v, unsigned lanes) {
  const auto* numbers = llvm::dyn_cast<llvm::ConstantDataVector>(v);
  if (!numbers || numbers->getNumElements() != lanes) return false;
  for (unsigned k = 0; k < lanes; k++)
    if (numbers->getElementAsInteger(k) != k) return false;
  return true;
}

/// A value as another one and a constant.
struct Offset {
  const llvm::Value* of = nullptr;  ///< null: of nothing
  llvm::APInt by;

  explicit Offset(const llvm::Value* v) : by(v->getType()->getScalarSizeInBits(), 0) {
    using namespace llvm::PatternMatch;
    const llvm::APInt* constant = nullptr;
    const llvm::Value* base = nullptr;
    if (match(v, m_APInt(constant))) {
      by = *constant;
    } else if (match(v, m_Add(m_Value(base), m_APInt(constant)))) {
      of = base;
      by = *constant;
    } else {
      of = v;
    }
  }
};

/// Does the loop of this index end behind the vector that `last` is in, whole or not? So do those
/// alone whose last vector LLVM masks; what else compares an index may be a condition of the user's.
bool ends_behind(const llvm::PHINode* index, const llvm::Value* next, const llvm::Value* last,
                 unsigned lanes) {
  using namespace llvm::PatternMatch;
  const auto* latch = llvm::cast<llvm::Instruction>(next)->getParent()->getTerminator();
  const llvm::Value* end = nullptr;
  llvm::Value* condition = nullptr;
  if (!match(latch, m_Br(m_Value(condition), m_BasicBlock(), m_BasicBlock()))) return false;
  const auto* compared = llvm::dyn_cast<llvm::ICmpInst>(condition);
  if (!compared || compared->getOperand(0) != next) return false;
  const Offset of_last(last);
  const llvm::APInt* whole = nullptr;
  if (match(compared->getOperand(1), m_APInt(whole)))  // of a constant number of iterations
    return !of_last.of && *whole == (of_last.by.udiv(lanes) + 1) * lanes;
  const llvm::APInt* mask = nullptr;
  if (!match(compared->getOperand(1), m_And(m_Value(end), m_APInt(mask)))) return false;
  const Offset of_end(end);
  return -*mask == lanes && of_end.of == of_last.of && of_end.by - of_last.by == lanes &&
         index->getType() == last->getType();
}

/// The index of the first lane, which counts whole vectors from 0 on, where the mask says no more of
/// each lane than that its index is not past the last one: the first lane is one in all that runs.
const llvm::PHINode* first_lane(const Masked& access) {
  using namespace llvm::PatternMatch;
  const auto* compared = llvm::dyn_cast<llvm::ICmpInst>(access.mask);
  if (!compared || compared->getPredicate() != llvm::CmpInst::ICMP_ULE) return nullptr;
  const llvm::Value* last = llvm::getSplatValue(compared->getOperand(1));
  if (!last) return nullptr;
  const auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(compared->getOperand(0));
  if (!sum ||
      (sum->getOpcode() != llvm::Instruction::Or && sum->getOpcode() != llvm::Instruction::Add))
    return nullptr;
  if (!is_step_vector(sum->getOperand(1), access.lanes())) return nullptr;
  const auto* index =
      llvm::dyn_cast_or_null<llvm::PHINode>(llvm::getSplatValue(sum->getOperand(0)));
  if (!index || index->getNumIncomingValues() != 2) return nullptr;
  for (unsigned k = 0; k < 2; k++)
    if (match(index->getIncomingValue(k), m_Zero()) &&
        match(index->getIncomingValue(1 - k),
              m_Add(m_Specific(index), m_SpecificInt(access.lanes()))) &&
        ends_behind(index, index->getIncomingValue(1 - k), last, access.lanes()))
      return index;
  return nullptr;
}

/// Is it the vector from element `index` on of a marked array of whole ones?
bool is_of_strip(const Masked& access, const llvm::PHINode* index) {
  const auto* place = llvm::dyn_cast<llvm::GetElementPtrInst>(access.place);
  if (!place || place->getNumIndices() != 1 || place->getOperand(1) != index ||
      place->getSourceElementType() != access.type->getElementType())
    return false;
  const auto* array = llvm::dyn_cast<llvm::AllocaInst>(place->getPointerOperand());
  if (!array || !array->hasMetadata(of_strip)) return false;
  const auto* type = llvm::dyn_cast<llvm::ArrayType>(array->getAllocatedType());
  return type && type->getElementType() == access.type->getElementType() &&
         type->getNumElements() % access.lanes() == 0;
}

void take_mask(const Masked& access) {
  llvm::IRBuilder<> b(access.inst);
  const bool is_load = access.inst->getIntrinsicID() == llvm::Intrinsic::masked_load;
  const auto* alignment =
      llvm::cast<llvm::ConstantInt>(access.inst->getArgOperand(is_load ? 1 : 2));
  llvm::Instruction* made = nullptr;
  if (is_load)
    made = b.CreateAlignedLoad(access.type, access.place, alignment->getMaybeAlignValue());
  else
    made = b.CreateAlignedStore(access.inst->getArgOperand(0), access.place,
                                alignment->getMaybeAlignValue());
  made->copyMetadata(*access.inst);
  access.inst->replaceAllUsesWith(made);
  access.inst->eraseFromParent();
}

}  // namespace

void mark_of_strip(llvm::AllocaInst& array) {
  array.setMetadata(of_strip, llvm::MDNode::get(array.getContext(), {}));
}

void access_whole_lanes(llvm::Module& module) {
  std::vector<Masked> whole;
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& inst : block) {
        const std::optional<Masked> access = Masked::of(inst);
        const llvm::PHINode* index = access ? first_lane(*access) : nullptr;
        if (index && is_of_strip(*access, index)) whole.push_back(*access);
      }
  for (const Masked& access : whole) take_mask(access);
}

}  // namespace quern::codegen
