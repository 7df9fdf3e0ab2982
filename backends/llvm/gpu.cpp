#include "backends/llvm/gpu.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include "backends/llvm/scalar.h"

namespace quern::codegen {

namespace {
bool may_be_zero(const llvm::Value* v) {
  const auto* c = llvm::dyn_cast<llvm::ConstantFP>(v);
  return !c || c->isZero();
}

/// The same value, or two zeros.
bool compares_like(const llvm::Value* x, const llvm::Value* y) {
  const auto *a = llvm::dyn_cast<llvm::ConstantFP>(x), *b = llvm::dyn_cast<llvm::ConstantFP>(y);
  return x == y || (a && b && a->isZero() && b->isZero());
}

/// Does LLVM's code generator see a minimum or maximum here, which takes zeros for equal? Code for
/// GPUs has no vectors.
bool confuses_zeros(const llvm::SelectInst& choice) {
  const auto* compare = llvm::dyn_cast<llvm::FCmpInst>(choice.getCondition());
  if (!compare || choice.hasMetadata(of_any_zero)) return false;
  const llvm::Value *x = compare->getOperand(0), *y = compare->getOperand(1);
  const llvm::Value *a = choice.getTrueValue(), *b = choice.getFalseValue();
  const bool of_compared =
      (compares_like(x, a) && compares_like(y, b)) || (compares_like(x, b) && compares_like(y, a));
  return of_compared && may_be_zero(a) && may_be_zero(b);
}
}  // namespace

Machine gpu_machine(const Isa& isa, const llvm::TargetMachine& machine) {
  Machine out = machine_of(isa, machine);
  out.global_space = 1;
  out.read_only_loads = true;
  return out;
}

void keep_zeros_of_choices(llvm::Module& module) {
  std::vector<llvm::SelectInst*> choices;
  for (llvm::Function& f : module)
    for (llvm::Instruction& inst : llvm::instructions(f))
      if (auto* choice = llvm::dyn_cast<llvm::SelectInst>(&inst); choice && confuses_zeros(*choice))
        choices.push_back(choice);
  for (llvm::SelectInst* choice : choices) {
    llvm::IRBuilder<> b(choice);
    llvm::Type* bits = b.getIntNTy(choice->getType()->getScalarSizeInBits());
    llvm::Value* chosen =
        b.CreateSelect(choice->getCondition(), b.CreateBitCast(choice->getTrueValue(), bits),
                       b.CreateBitCast(choice->getFalseValue(), bits));
    choice->replaceAllUsesWith(b.CreateBitCast(chosen, choice->getType()));
    choice->eraseFromParent();
  }
}

}  // namespace quern::codegen
