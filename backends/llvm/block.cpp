// What the threads of a block do together: by shuffles within 32 threads, by shared memory beyond.
#include "backends/llvm/emitter.h"
#include "backends/llvm/scalar.h"
#include "quern/error.h"
#include "quern/ir/abi.h"

namespace quern::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {
constexpr unsigned row = 32;        ///< threads that shuffles reach
constexpr unsigned most_rows = 32;  ///< a block has at most 1,024 threads
constexpr int most_met = 24;        ///< updates of a task that are there twice

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

/// The first thread of each row of 32 gets all their values, combined.
Value* Emitter::halved(ir::AtomicOp op, ir::Type type, Value* v) {
  for (unsigned distance = row / 2; distance > 0; distance /= 2)
    v = emit_combine(b_, op, type, v, shuffle_down(v, distance));
  return v;
}

/// Do all threads of a block come to the update, which nobody has the old value of, and change one
/// location? Then all of them would wait there, one for the other. Where threads part on the way
/// few warps are there as a whole. NaNs make minima depend on the order. Who reads the location behind
/// its own update must find that, and the first thread may be later than others with theirs.
bool Emitter::is_met(const ir::Inst& inst) {
  using ir::AtomicOp;
  if (!machine_.all_here || !task_ || task_->walk != ir::Task::element || inst.used() ||
      inst.imm >= ir::abi::frame_class || met_ == most_met || memory_.is_seen(inst))
    return false;
  const AtomicOp op = inst.atomic();
  const bool sum = op == AtomicOp::add && !(kernel_.modes.strict && ir::is_float(inst.elem));
  const bool other = !ir::is_float(inst.elem) &&
                     (op == AtomicOp::min || op == AtomicOp::max || op == AtomicOp::bit_and ||
                      op == AtomicOp::bit_or || op == AtomicOp::bit_xor);
  if (!sum && !other) return false;
  if (!divergence_) divergence_.emplace(kernel_, *task_);
  if (divergence_->varies(inst.operand(0))) return false;
  const ir::Inst* parts = divergence_->around(&inst);
  return !parts ||
         !divergence_->around(parts);  // the outermost keeps threads without an iteration out
}

/// Where a row's threads are all here, in one round of the loops around: one update, of what they
/// have together (Adinets, "Optimized filtering with warp-aggregated atomics", 2014).
void Emitter::update_together(const ir::Inst& inst) {
  met_++;
  Value *address = value(inst.operand(0)), *v = value(inst.operand(1));
  BasicBlock *here = block("here"), *together = block("together"), *first = block("first"),
             *apart = block("apart"), *done = block("done");
  b_.CreateCondBr(machine_.all_here(b_), here, apart);
  b_.SetInsertPoint(here);
  Value* place = b_.CreatePtrToInt(address, b_.getInt64Ty());
  b_.CreateCondBr(machine_.all_alike(b_, place), together, apart);
  b_.SetInsertPoint(together);
  Value* all = halved(inst.atomic(), inst.elem, v);
  b_.CreateCondBr(b_.CreateIsNull(b_.CreateAnd(grid_.thread, row - 1)), first, done);
  b_.SetInsertPoint(first);
  memory_.rmw(b_, inst, address, {&all, 1});
  b_.CreateBr(done);
  b_.SetInsertPoint(apart);
  memory_.rmw(b_, inst, address, {&v, 1});
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
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
