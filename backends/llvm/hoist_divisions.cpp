#include "backends/llvm/hoist_divisions.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/IR/IRBuilder.h>

namespace quern::codegen {

namespace {

bool is_signed(const llvm::Instruction& division) {
  return division.getOpcode() == llvm::Instruction::SDiv ||
         division.getOpcode() == llvm::Instruction::SRem;
}

/// 1 where it would trap.
void guard(llvm::IRBuilder<>& b, llvm::Instruction& division) {
  llvm::Value* y = division.getOperand(1);
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(y);
  if (constant && !constant->isZero() && !constant->isMinusOne()) return;
  llvm::Type* type = y->getType();
  y = b.CreateFreeze(y);
  llvm::Value* traps = b.CreateICmpEQ(y, llvm::ConstantInt::get(type, 0));
  if (is_signed(division)) {
    llvm::Value* x = b.CreateFreeze(division.getOperand(0));
    division.setOperand(0, x);
    const auto lowest = llvm::APInt::getSignedMinValue(type->getScalarSizeInBits());
    llvm::Value* overflows = b.CreateAnd(b.CreateICmpEQ(x, llvm::ConstantInt::get(type, lowest)),
                                         b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type)));
    traps = b.CreateOr(traps, overflows);
  }
  division.setOperand(1, b.CreateSelect(traps, llvm::ConstantInt::get(type, 1), y));
}

bool hoist(llvm::Loop& loop, llvm::LoopInfo& loops) {
  llvm::BasicBlock* before = loop.getLoopPreheader();
  if (!before) return false;
  bool changed = false;
  llvm::LoopBlocksRPO blocks(&loop);
  blocks.perform(&loops);
  for (llvm::BasicBlock* block : blocks)
    for (llvm::Instruction& inst : llvm::make_early_inc_range(*block)) {
      if (!inst.isIntDivRem() || !loop.makeLoopInvariant(inst.getOperand(0), changed) ||
          !loop.makeLoopInvariant(inst.getOperand(1), changed))
        continue;
      llvm::IRBuilder<> b(before->getTerminator());
      guard(b, inst);
      inst.dropPoisonGeneratingFlags();
      inst.moveBefore(before->getTerminator());
      changed = true;
    }
  return changed;
}

}  // namespace

llvm::PreservedAnalyses HoistDivisions::run(llvm::Function& function,
                                            llvm::FunctionAnalysisManager& analyses) {
  auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  bool changed = false;
  for (llvm::Loop* loop : loops.getLoopsInPreorder())
    if (loop->isInnermost()) changed |= hoist(*loop, loops);
  if (!changed) return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

}  // namespace quern::codegen
