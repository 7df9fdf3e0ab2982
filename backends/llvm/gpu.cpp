#include "backends/llvm/gpu.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include "backends/llvm/scalar.h"

namespace quern::codegen {

namespace {
/// Both vendors' parameters of a kernel take 4 KB at most; four words stand behind the block.
constexpr uint32_t max_value_bytes = 4096 - 4 * 8;
/// Batches of more commands are worth a graph (gpu::Graphs::shortest), which wants a block that
/// stays where it is.
constexpr uint32_t max_value_tasks = 7;

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

runtime::Target gpu_target(const std::string& backend, const Isa& isa) {
  runtime::Target t = target(backend, isa);
  t.traits.walk = ir::Task::element;
  t.traits.block_reductions = true;
  t.traits.narrow_atomics = false;
  t.traits.native_math = {{ir::Op::rsqrt, ir::Type::f32}};
  t.traits.told_of_failures = true;
  t.traits.whole_grids = true;
  t.traits.value_bytes = max_value_bytes;
  t.traits.value_tasks = max_value_tasks;
  return t;
}

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
