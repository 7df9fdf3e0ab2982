// What the threads of a block do together: by shuffles within 32 threads, by shared memory beyond.
#include "backends/llvm/emitter.h"
#include "backends/llvm/scalar.h"
#include "quern/error.h"

namespace quern::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {
constexpr unsigned row = 32;        ///< threads that shuffles reach
constexpr unsigned most_rows = 32;  ///< a block has at most 1,024 threads

bool in_loop(const ir::Inst& inst) {
  for (const ir::Inst* around = inst.parent->parent; around; around = around->parent->parent)
    if (around->is(ir::Op::loop) || around->is(ir::Op::while_)) return true;
  return false;
}
}  // namespace

/// One word for each row of threads, shared by the block.
llvm::GlobalVariable* Emitter::block_values(int number) {
  llvm::Module& module = *function_->getParent();
  const std::string name = "block_partials_" + std::to_string(number);
  if (auto* known = module.getNamedGlobal(name)) return known;
  auto* type = llvm::ArrayType::get(b_.getInt64Ty(), most_rows);
  auto* memory = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage,
                                          llvm::PoisonValue::get(type), name, nullptr,
                                          llvm::GlobalValue::NotThreadLocal, machine_.shared_space);
  memory->setAlignment(llvm::Align(8));
  return memory;
}

/// The value that the thread `distance` places on in the row has; the words of it one by one.
Value* Emitter::shuffle_down(Value* v, unsigned distance) {
  unsigned width = unsigned(v->getType()->getPrimitiveSizeInBits());
  Value* bits = b_.CreateBitCast(v, b_.getIntNTy(width));
  auto word = [&](Value* part) {
    return machine_.shuffle_down(b_, b_.CreateZExtOrTrunc(part, b_.getInt32Ty()), distance);
  };
  Value* low = word(bits);
  if (width <= 32) return b_.CreateBitCast(b_.CreateTrunc(low, bits->getType()), v->getType());
  Value* high = b_.CreateZExt(word(b_.CreateLShr(bits, 32)), b_.getInt64Ty());
  Value* both = b_.CreateOr(b_.CreateShl(high, 32), b_.CreateZExt(low, b_.getInt64Ty()));
  return b_.CreateBitCast(both, v->getType());
}

/// First each row by halving, then the first thread takes the rows' values in order.
Value* Emitter::block_reduce(const ir::Inst& inst) {
  if (!machine_.grid) throw InternalError("a chunked task combines threads");
  Value* v = value(inst.operand(0));
  llvm::Type* type = v->getType();
  auto combined = [&](Value* x, Value* y) {
    return emit_combine(b_, inst.atomic(), inst.elem, x, y);
  };
  Value* left = b_.CreateSub(grid_.block_threads, grid_.thread);
  for (unsigned distance = row / 2; distance > 0; distance /= 2) {
    Value* both = combined(v, shuffle_down(v, distance));
    v = b_.CreateSelect(b_.CreateICmpUGT(left, b_.getInt32(distance)), both, v);
  }

  // Two that follow each other have words of their own: the barrier of the second comes after all
  // threads have read the first's.
  llvm::GlobalVariable* memory = block_values(reductions_++ % 2);
  auto place = [&](Value* number) {
    return b_.CreateInBoundsGEP(memory->getValueType(), memory, {b_.getInt32(0), number});
  };
  BasicBlock *put = block("put"), *wait = block("wait"), *gather = block("gather");
  BasicBlock *more = block("more"), *done = block("done");
  Value* in_row = b_.CreateAnd(grid_.thread, row - 1);
  b_.CreateCondBr(b_.CreateIsNull(in_row), put, wait);
  b_.SetInsertPoint(put);
  b_.CreateAlignedStore(v, place(b_.CreateLShr(grid_.thread, 5)), llvm::Align(8));
  b_.CreateBr(wait);

  b_.SetInsertPoint(wait);
  machine_.barrier(b_);
  Value* rows = b_.CreateLShr(b_.CreateAdd(grid_.block_threads, b_.getInt32(row - 1)), 5);
  Value* first = b_.CreateIsNull(grid_.thread);
  Value* last = b_.CreateSelect(first, rows, b_.getInt32(0));
  BasicBlock* before = b_.GetInsertBlock();
  b_.CreateBr(gather);

  b_.SetInsertPoint(gather);
  auto* number = b_.CreatePHI(b_.getInt32Ty(), 2);
  auto* total = b_.CreatePHI(type, 2);
  number->addIncoming(b_.getInt32(1), before);
  total->addIncoming(v, before);
  b_.CreateCondBr(b_.CreateICmpULT(number, last), more, done);
  b_.SetInsertPoint(more);
  Value* next = combined(total, b_.CreateAlignedLoad(type, place(number), llvm::Align(8)));
  number->addIncoming(b_.CreateAdd(number, b_.getInt32(1)), b_.GetInsertBlock());
  total->addIncoming(next, b_.GetInsertBlock());
  b_.CreateBr(gather);

  b_.SetInsertPoint(done);
  if (in_loop(inst)) machine_.barrier(b_);  // the words are free for the next round
  return total;
}

}  // namespace quern::codegen
