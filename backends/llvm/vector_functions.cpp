#include "backends/llvm/vector_functions.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <algorithm>

#include "backends/llvm/callees.h"
#include "backends/llvm/emitter.h"

namespace quern::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr const char* names_attribute = "vector-function-abi-variant";

/// Tells LLVM which function computes `scalar` for so many lanes (its own vector ABI): all, or, where it
/// has one more argument, those of a mask.
void announce(llvm::Function& scalar, llvm::Function& vector, unsigned count) {
  const char* kind = vector.arg_size() > scalar.arg_size() ? "M" : "N";
  std::string name = "_ZGV_LLVM_" + std::string(kind) + std::to_string(count) +
                     std::string(scalar.arg_size(), 'v') + "_" + scalar.getName().str() + "(" +
                     vector.getName().str() + ")";
  if (scalar.hasFnAttribute(names_attribute))
    name = scalar.getFnAttribute(names_attribute).getValueAsString().str() + "," + name;
  scalar.addFnAttr(names_attribute, name);
  // Nothing calls it until loops are vectorised.
  llvm::appendToCompilerUsed(*scalar.getParent(), {&vector});
}

/// The same of some lanes: the others compute f(1, …), so that none of them wants a rare branch.
llvm::Function* masked(llvm::Function& vector, unsigned count) {
  llvm::LLVMContext& context = vector.getContext();
  std::vector<llvm::Type*> params = vector.getFunctionType()->params().vec();
  params.push_back(llvm::FixedVectorType::get(llvm::Type::getInt1Ty(context), count));
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(vector.getReturnType(), params, false),
      llvm::Function::InternalLinkage, vector.getName() + "_masked", *vector.getParent());
  function->setAttributes(vector.getAttributes());
  llvm::IRBuilder<> b(BasicBlock::Create(context, "entry", function));
  llvm::Argument* mask = function->getArg(unsigned(params.size()) - 1);
  std::vector<Value*> in;
  for (size_t k = 0; k + 1 < params.size(); k++)
    in.push_back(
        b.CreateSelect(mask, function->getArg(unsigned(k)), llvm::ConstantFP::get(params[k], 1.0)));
  b.CreateRet(b.CreateCall(&vector, in));
  return function;
}

}  // namespace

std::vector<unsigned> vector_lengths(const Machine& machine, const ir::Function& f) {
  if (machine.vector_bits == 0 || !is_pure(f) || f.results.size() != 1) return {};
  auto fits = [](ir::Type t) { return t == ir::Type::f32 || t == ir::Type::f64; };
  for (const ir::Value& v : f.body->args)
    if (!fits(v.type)) return {};
  if (!fits(f.results[0])) return {};
  // A loop takes as many lanes as its widest element allows: f32 or f64.
  return {machine.vector_bits / 64, machine.vector_bits / 32};
}

void drop_unused_vector_functions(llvm::Module& module) {
  llvm::GlobalVariable* kept = module.getGlobalVariable("llvm.compiler.used", true);
  if (!kept) return;
  kept->eraseFromParent();
  // Those under a mask call others, and stand behind them.
  for (llvm::Function& f : llvm::make_early_inc_range(llvm::reverse(module))) {
    f.removeDeadConstantUsers();
    if (f.hasLocalLinkage() && f.use_empty()) f.eraseFromParent();
  }
}

/// A loop over the lanes, which becomes vector code, of the usual side of each rare branch; where a
/// lane wants a rare one the scalar function does all again.
void Emitter::vector_function(llvm::Function* scalar, const ir::Function& f, unsigned count) {
  llvm::Type* type = scalar->getReturnType();
  auto* vector = llvm::FixedVectorType::get(type, count);
  std::vector<llvm::Type*> params(scalar->arg_size(), vector);
  auto* function = llvm::Function::Create(
      llvm::FunctionType::get(vector, params, false), llvm::Function::InternalLinkage,
      scalar->getName() + "_" + std::to_string(count), *scalar->getParent());
  function->setAttributes(scalar->getAttributes());
  function->removeFnAttr(names_attribute);
  start(function, f.body);
  const llvm::Align align(count * type->getPrimitiveSizeInBits() / 8);
  auto make_room = [&] {
    auto* memory = b_.CreateAlloca(vector);
    memory->setAlignment(align);
    return memory;
  };
  Values in;
  for (llvm::Argument& argument : function->args()) {
    in.push_back(make_room());
    b_.CreateAlignedStore(&argument, in.back(), align);
  }
  Value* out = make_room();

  BasicBlock* loop = block("lane");
  BasicBlock* test = block("test");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  auto* lane = b_.CreatePHI(b_.getInt64Ty(), 2);
  auto* any = b_.CreatePHI(b_.getInt1Ty(), 2);
  llvm::MDNode* group = llvm::MDNode::getDistinct(context_, {});
  auto mark = [&](llvm::Instruction* access) {
    access->setMetadata(llvm::LLVMContext::MD_access_group, group);
  };
  for (size_t k = 0; k < in.size(); k++) {
    auto* v = b_.CreateLoad(type, b_.CreateInBoundsGEP(type, in[k], lane));
    mark(v);
    values_[f.body->arg(k)] = v;
  }
  in_vector_ = f.body;
  rare_.clear();
  Value* result = region(f.body)[0];
  in_vector_ = nullptr;
  mark(b_.CreateStore(result, b_.CreateInBoundsGEP(type, out, lane)));
  Value* wanted = any;
  for (Value* condition : rare_) wanted = b_.CreateOr(wanted, condition);
  Value* next = b_.CreateNUWAdd(lane, b_.getInt64(1));
  lane->addIncoming(b_.getInt64(0), entry_);
  lane->addIncoming(next, b_.GetInsertBlock());
  any->addIncoming(b_.getFalse(), entry_);
  any->addIncoming(wanted, b_.GetInsertBlock());
  Value* more = b_.CreateICmpNE(next, b_.getInt64(count));
  b_.CreateCondBr(more, loop, test)
      ->setMetadata(llvm::LLVMContext::MD_loop, metadata_of({.group = group, .width = count}));

  b_.SetInsertPoint(test);
  if (!rare_.empty()) {
    BasicBlock* again = block("again");
    BasicBlock* done = block("done");
    auto* rarely = llvm::MDBuilder(context_).createBranchWeights(1, 1 << 20);
    b_.CreateCondBr(wanted, again, done, rarely);
    b_.SetInsertPoint(again);
    Value* all = llvm::PoisonValue::get(vector);
    for (unsigned k = 0; k < count; k++) {
      Values one;
      for (llvm::Argument& argument : function->args())
        one.push_back(b_.CreateExtractElement(&argument, k));
      all = b_.CreateInsertElement(all, b_.CreateCall(scalar, one), k);
    }
    b_.CreateRet(all);
    b_.SetInsertPoint(done);
  }
  b_.CreateRet(b_.CreateAlignedLoad(vector, out, align));
  announce(*scalar, *function, count);
  if (machine_.masks) announce(*scalar, *masked(*function, count), count);
}

void Emitter::usual_side(const ir::Inst& inst) {
  rare_.push_back(value(inst.operand(0)));
  const Values results = region(inst.region(1));
  for (size_t r = 0; r < results.size(); r++) values_[inst.result(r)] = results[r];
}

}  // namespace quern::codegen
