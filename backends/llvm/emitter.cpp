#include "backends/llvm/emitter.h"

#include "backends/llvm/scalar.h"
#include "backends/llvm/whole_lanes.h"
#include "quern/error.h"
#include "quern/ir/abi.h"

namespace quern::codegen {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

Emitter::Emitter(llvm::Module& module, const ir::Kernel& kernel, const Machine& machine,
                 const std::vector<llvm::Function*>& callees)
    : context_(module.getContext()),
      kernel_(kernel),
      machine_(machine),
      callees_(callees),
      memory_(context_, machine, kernel),
      pieces_(machine.function_sizes),
      b_(context_) {}

void Emitter::task(llvm::Function* function, const ir::Task& task) {
  start(function, task.body);
  task_ = &task;
  divergence_.reset();
  met_ = 0;
  if (machine_.grid)
    enter_thread(task);
  else
    enter_chunk();
  region(task.body);
  b_.CreateRetVoid();
  pieces_.move_out(*function);
}

void Emitter::enter_chunk() {
  Value* chunk = function_->getArg(1);
  Value* alone = b_.CreateAnd(chunk, b_.getInt64(ir::abi::alone_bit));
  memory_.set_alone(b_.CreateIsNotNull(alone));
  builtins_ = {{ir::Builtin::chunk, b_.CreateXor(chunk, alone)},
               {ir::Builtin::begin, function_->getArg(2)},
               {ir::Builtin::end, function_->getArg(3)}};
}

/// What a thread of a grid does of the launch.
void Emitter::enter_thread(const ir::Task& task) {
  Value* iterations = function_->getArg(2);
  Value* asks = pass_guard(function_->getArg(1));
  grid_ = machine_.grid(b_);
  auto wide = [&](Value* v) { return b_.CreateZExt(v, b_.getInt64Ty()); };
  Value* first = b_.CreateMul(wide(grid_.block), wide(grid_.block_threads), "", true, true);
  Value* thread = b_.CreateAdd(first, wide(grid_.thread), "", true, true);
  Value *fourth = function_->getArg(3), *fifth = function_->getArg(4);
  if (task.walk == ir::Task::element) {
    builtins_ = {{ir::Builtin::thread, thread},
                 {ir::Builtin::threads, grid_.threads},
                 {ir::Builtin::block_thread, wide(grid_.thread)},
                 {ir::Builtin::reciprocal, fourth},
                 {ir::Builtin::next_reciprocal, fifth},
                 {ir::Builtin::first_row, fourth},
                 {ir::Builtin::rows, fifth},
                 {ir::Builtin::asks, asks},
                 {ir::Builtin::end, iterations}};
    return;
  }
  Value *grain = fourth, *chunks = fifth;
  return_unless(b_.CreateICmpULT(thread, chunks));
  Value* begin = b_.CreateMul(thread, grain);
  Value* end = b_.CreateAdd(begin, grain);
  builtins_ = {
      {ir::Builtin::chunk, thread},
      {ir::Builtin::begin, begin},
      {ir::Builtin::asks, asks},
      {ir::Builtin::end, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, iterations)}};
}

/// Returns where the guard's word is 0; yields what builtin `asks` is. A launch without a guard
/// that does not ask either, the usual one, makes one comparison.
Value* Emitter::pass_guard(Value* guard) {
  BasicBlock *entry = b_.GetInsertBlock(), *any = block("any"), *test = block("test"),
             *body = block("body");
  Value* bits = b_.CreatePtrToInt(guard, b_.getInt64Ty());
  b_.CreateCondBr(b_.CreateIsNull(bits), body, any);
  b_.SetInsertPoint(any);
  Value* bit = b_.getInt64(ir::abi::asks_bit);
  Value* asks = b_.CreateIsNotNull(b_.CreateAnd(bits, bit));
  Value* address = b_.CreateAnd(bits, b_.CreateNot(bit));
  b_.CreateCondBr(b_.CreateIsNull(address), body, test);
  b_.SetInsertPoint(test);
  Value* cell = b_.CreateIntToPtr(address, guard->getType());
  return_unless(b_.CreateIsNotNull(b_.CreateAlignedLoad(b_.getInt32Ty(), cell, llvm::Align(4))));
  BasicBlock* tested = b_.GetInsertBlock();
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* all = b_.CreatePHI(b_.getInt1Ty(), 3);
  all->addIncoming(b_.getFalse(), entry);
  all->addIncoming(asks, any);
  all->addIncoming(asks, tested);
  return b_.CreateZExt(all, b_.getInt64Ty());
}

void Emitter::return_unless(Value* condition) {
  BasicBlock* stay = block("stay");
  BasicBlock* out = block("out");
  b_.CreateCondBr(condition, stay, out);
  b_.SetInsertPoint(out);
  b_.CreateRetVoid();
  b_.SetInsertPoint(stay);
}

void Emitter::callee(llvm::Function* function, const ir::Function& f) {
  start(function, f.body);
  for (size_t k = 0; k < f.body->args.size(); k++)
    values_[f.body->arg(k)] = function->getArg(unsigned(k));
  Values results = region(f.body);
  if (results.empty())
    b_.CreateRetVoid();
  else if (results.size() == 1)
    b_.CreateRet(results[0]);
  else
    b_.CreateAggregateRet(results.data(), unsigned(results.size()));
  pieces_.move_out(*function);
}

void Emitter::start(llvm::Function* function, const ir::Region* body) {
  function_ = function;
  values_.clear();
  keys_.clear();
  slots_.clear();
  memory_.begin_task(body);
  entry_ = block("entry");
  b_.SetInsertPoint(entry_);
}

BasicBlock* Emitter::block(const char* name) {
  return BasicBlock::Create(context_, name, function_);
}

llvm::Type* Emitter::type(ir::Type t) { return type_of(context_, t, machine_.global_space); }

Value* Emitter::value(const ir::Value* v) {
  auto it = values_.find(v);
  if (it == values_.end()) throw InternalError("a value is used before it was emitted");
  return it->second;
}

Emitter::Values Emitter::operands(const ir::Inst& inst, size_t from) {
  Values all;
  for (size_t k = from; k < inst.operand_count(); k++)
    if (inst.operand(k)->type != ir::Type::slot) all.push_back(value(inst.operand(k)));
  return all;
}

Emitter::Values Emitter::region(const ir::Region* r) {
  statements(r);
  return operands(*r->last);
}

void Emitter::statements(const ir::Region* r) {
  const std::vector<const ir::Inst*> starts = pieces_.starts(r);
  auto start = starts.begin();
  BasicBlock* first = nullptr;
  auto cut = [&] {
    BasicBlock* next = block("piece");
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
    if (first) pieces_.add(r, first, next);
    first = next;
  };
  for (const ir::Inst* inst = r->first; inst != r->last; inst = inst->next) {
    if (start != starts.end() && *start == inst) {
      cut();
      start++;
    }
    emit(*inst);
  }
  if (first) cut();
}

void Emitter::emit(const ir::Inst& inst) {
  switch (inst.op) {
    case Op::if_: return if_else(inst);
    case Op::loop:
    case Op::while_: return any_loop(inst);
    case Op::slot: return slot(inst);
    case Op::put: return put(inst);
    case Op::call: return call(inst);
    case Op::write: return memory_.write(b_, inst, value(inst.operand(0)), value(inst.operand(1)));
    case Op::rmw:
      if (is_met(inst)) return update_together(inst);
      [[fallthrough]];
    default:
      if (!extreme_step(inst)) values_[inst.results.data()] = single(inst);
  }
}

Value* Emitter::single(const ir::Inst& inst) {
  switch (inst.op) {
    case Op::arg: return memory_.argument(b_, inst, function_->getArg(0));
    case Op::builtin: return builtin(inst.builtin());
    case Op::offset: return offset(value(inst.operand(0)), value(inst.operand(1)));
    case Op::read: return memory_.read(b_, inst, value(inst.operand(0)));
    case Op::rmw: return memory_.rmw(b_, inst, value(inst.operand(0)), operands(inst, 1));
    case Op::get: return get(inst);
    case Op::block_reduce: return block_reduce(inst);
    default: break;
  }
  Value* v = nullptr;
  if (ir::info(inst.op).library && machine_.native)
    v = machine_.native(b_, inst.op, value(inst.operand(0)));
  else
    v = emit_scalar(b_, inst, operands(inst), kernel_.modes,
                    memory_.group() && machine_.vector_bits > 0);
  if (!v)
    throw InternalError("operation '" + std::string(ir::info(inst.op).name) +
                        "' reached the code generator");
  return v;
}

Value* Emitter::builtin(ir::Builtin which) {
  auto it = builtins_.find(which);
  if (it == builtins_.end()) throw InternalError("a task asks for a builtin that its walk lacks");
  return it->second;
}

Value* Emitter::offset(Value* address, Value* bytes) {
  return b_.CreateGEP(b_.getInt8Ty(), address, bytes, "",
                      llvm::GEPNoWrapFlags::noUnsignedSignedWrap());
}

void Emitter::call(const ir::Inst& inst) {
  Value* result = b_.CreateCall(callees_.at(inst.imm), operands(inst));
  if (inst.results.size() == 1) values_[inst.result()] = result;
  for (unsigned k = 0; inst.results.size() > 1 && k < inst.results.size(); k++)
    values_[inst.result(k)] = b_.CreateExtractValue(result, k);
}

// ---- slots: stack memory that becomes registers where it is not indexed

llvm::Type* Emitter::slot_type(ir::Type t) { return type(ir::storage_type(t)); }

namespace {

/// A strip's arrays lie side by side. Few iterations use only the beginning of each, and these would
/// share the sets of the first-level cache between them: a line more keeps them apart.
uint64_t elements_apart(const ir::Inst& slot) {
  constexpr uint64_t line = 64, often_alike = 512;
  const uint64_t size = ir::byte_size(slot.elem);
  const bool is_of_strip = slot.imm > 1 && (slot.kind & ir::unset);
  return slot.imm + (is_of_strip && slot.imm * size % often_alike == 0 ? line / size : 0);
}

}  // namespace

void Emitter::slot(const ir::Inst& inst) {
  llvm::Type* elem = slot_type(inst.elem);
  llvm::Type* whole = inst.imm == 1 ? elem : llvm::ArrayType::get(elem, elements_apart(inst));
  llvm::IRBuilder<> at_entry(entry_, entry_->begin());
  auto* memory = at_entry.CreateAlloca(whole, machine_.slot_space);
  memory->setAlignment(llvm::Align(inst.imm == 1 ? ir::byte_size(inst.elem) : 64));
  slots_[inst.results.data()] = {memory, elem};
  pieces_.add_slot(inst, *memory);
  if (inst.kind & ir::unset) {
    if (inst.imm > 1) mark_of_strip(*memory);
    return;
  }
  if (inst.imm == 1)
    b_.CreateStore(llvm::Constant::getNullValue(whole), memory);
  else
    b_.CreateMemSet(memory, b_.getInt8(0), inst.imm * ir::byte_size(inst.elem), memory->getAlign());
}

Value* Emitter::slot_place(const ir::Inst& inst, bool indexed) {
  const Slot& s = slots_.at(inst.operand(0));
  if (!indexed) return s.memory;
  const ir::Value* index = inst.operand(1);
  Value* wide = b_.CreateIntCast(value(index), b_.getInt64Ty(), ir::is_signed(index->type));
  return b_.CreateGEP(s.elem, s.memory, wide);
}

Value* Emitter::get(const ir::Inst& inst) {
  llvm::Type* elem = slot_type(inst.elem);
  auto* v = b_.CreateAlignedLoad(elem, slot_place(inst, inst.operand_count() == 2),
                                 llvm::Align(ir::byte_size(inst.elem)));
  in_group(v, inst.operand(0));
  return inst.elem == ir::Type::b1 ? b_.CreateICmpNE(v, b_.getInt8(0)) : v;
}

void Emitter::put(const ir::Inst& inst) {
  Value* v = value(inst.operand(inst.operand_count() - 1));
  if (inst.elem == ir::Type::b1) v = b_.CreateZExt(v, b_.getInt8Ty());
  auto* store = b_.CreateAlignedStore(v, slot_place(inst, inst.operand_count() == 3),
                                      llvm::Align(ir::byte_size(inst.elem)));
  in_group(store, inst.operand(0));
}

}  // namespace quern::codegen
