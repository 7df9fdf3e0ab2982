#include "backends/llvm/codegen.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <optional>
#include <unordered_map>

#include "backends/llvm/memory.h"
#include "backends/llvm/scalar.h"
#include "quern/error.h"
#include "quern/ir/abi.h"

namespace quern::codegen {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

std::string task_symbol(size_t task) { return "task_" + std::to_string(task); }

namespace {

using Values = std::vector<Value*>;

bool has_atomics(const ir::Region* region) {
  bool found = false;
  ir::walk(const_cast<ir::Region*>(region),
           [&](const ir::Inst* inst) { found |= inst->is(Op::rmw) || inst->is(Op::call); });
  return found;
}

/// Does `region` fill in an error record? Then it hardly ever runs.
bool reports_error(const ir::Region* region) {
  for (const ir::Inst* inst = region->first; inst; inst = inst->next)
    if (inst->is(Op::rmw) && inst->imm == ir::abi::error_class) return true;
  return false;
}

/// Does `region` combine partial results of a reduction? There are few of them: not worth the time
/// to compile unrolled vector code.
bool combines(const ir::Region* region) {
  bool found = false;
  ir::walk(const_cast<ir::Region*>(region), [&](const ir::Inst* inst) {
    found |= inst->is(Op::read) && inst->imm == ir::abi::scratch_class;
  });
  return found;
}

/// Emits the regions of one function.
class Emitter {
 public:
  Emitter(llvm::Module& module, const ir::Kernel& kernel, const Machine& machine,
          const std::vector<llvm::Function*>& callees)
      : context_(module.getContext()),
        kernel_(kernel),
        machine_(machine),
        callees_(callees),
        memory_(context_, machine),
        b_(context_) {}

  void task(llvm::Function* function, const ir::Task& task) {
    start(function, task.body);
    region(task.body);
    b_.CreateRetVoid();
  }

  void callee(llvm::Function* function, const ir::Function& f) {
    start(function, f.body);
    for (size_t k = 0; k < f.body->args.size(); k++)
      values_[f.body->arg(k)] = function->getArg(unsigned(k));
    Values results = region(f.body);
    Value* all = llvm::PoisonValue::get(function->getReturnType());
    for (size_t k = 0; k < results.size(); k++)
      all = b_.CreateInsertValue(all, results[k], unsigned(k));
    b_.CreateRet(all);
  }

 private:
  void start(llvm::Function* function, const ir::Region* body) {
    function_ = function;
    values_.clear();
    keys_.clear();
    slots_.clear();
    memory_.begin_task(body);
    entry_ = block("entry");
    b_.SetInsertPoint(entry_);
  }

  BasicBlock* block(const char* name) { return BasicBlock::Create(context_, name, function_); }
  llvm::Type* type(ir::Type t) { return type_of(context_, t, machine_.global_space); }

  Value* value(const ir::Value* v) {
    auto it = values_.find(v);
    if (it == values_.end()) throw InternalError("a value is used before it was emitted");
    return it->second;
  }

  Values operands(const ir::Inst& inst, size_t from = 0) {
    Values all;
    for (size_t k = from; k < inst.operand_count(); k++)
      if (inst.operand(k)->type != ir::Type::slot) all.push_back(value(inst.operand(k)));
    return all;
  }

  /// Emits a region at the insertion point; the values of its terminator come back.
  Values region(const ir::Region* r) {
    statements(r);
    return operands(*r->last);
  }
  void statements(const ir::Region* r) {
    for (const ir::Inst* inst = r->first; inst != r->last; inst = inst->next) emit(*inst);
  }

  void emit(const ir::Inst& inst) {
    switch (inst.op) {
      case Op::if_: return if_else(inst);
      case Op::loop:
      case Op::while_: return any_loop(inst);
      case Op::slot: return slot(inst);
      case Op::put: return put(inst);
      case Op::call: return call(inst);
      case Op::write:
        return memory_.write(b_, inst, value(inst.operand(0)), value(inst.operand(1)));
      default:
        if (!extreme_step(inst)) values_[inst.results.data()] = single(inst);
    }
  }

  Value* single(const ir::Inst& inst) {
    switch (inst.op) {
      case Op::arg: return memory_.argument(b_, inst, function_->getArg(0));
      case Op::builtin: return builtin(inst.builtin());
      case Op::offset: return offset(value(inst.operand(0)), value(inst.operand(1)));
      case Op::read: return memory_.read(b_, inst, value(inst.operand(0)));
      case Op::rmw: return memory_.rmw(b_, inst, value(inst.operand(0)), operands(inst, 1));
      case Op::get: return get(inst);
      default: break;
    }
    Value* v = emit_scalar(b_, inst, operands(inst), kernel_.modes);
    if (!v)
      throw InternalError("operation '" + std::string(ir::info(inst.op).name) +
                          "' reached the code generator");
    return v;
  }

  Value* builtin(ir::Builtin which) {
    if (machine_.builtin) return machine_.builtin(b_, which);
    switch (which) {
      case ir::Builtin::chunk: return function_->getArg(1);
      case ir::Builtin::begin: return function_->getArg(2);
      case ir::Builtin::end: return function_->getArg(3);
      default: throw InternalError("a chunked task asks for its thread");
    }
  }

  Value* offset(Value* address, Value* bytes) {
    return b_.CreateGEP(b_.getInt8Ty(), address, bytes, "",
                        llvm::GEPNoWrapFlags::noUnsignedSignedWrap());
  }

  // ---- slots: stack memory that becomes registers where it is not indexed

  struct Slot {
    llvm::AllocaInst* memory;
    llvm::Type* elem;
  };

  llvm::Type* slot_type(ir::Type t) { return type(t == ir::Type::b1 ? ir::Type::u8 : t); }

  void slot(const ir::Inst& inst) {
    llvm::Type* elem = slot_type(inst.elem);
    llvm::Type* whole = inst.imm == 1 ? elem : llvm::ArrayType::get(elem, inst.imm);
    llvm::IRBuilder<> at_entry(entry_, entry_->begin());
    auto* memory = at_entry.CreateAlloca(whole, machine_.slot_space);
    memory->setAlignment(llvm::Align(inst.imm == 1 ? ir::byte_size(inst.elem) : 64));
    if (inst.imm == 1)
      b_.CreateStore(llvm::Constant::getNullValue(whole), memory);
    else
      b_.CreateMemSet(memory, b_.getInt8(0), inst.imm * ir::byte_size(inst.elem),
                      memory->getAlign());
    slots_[inst.results.data()] = {memory, elem};
  }

  Value* slot_place(const ir::Inst& inst, bool indexed) {
    const Slot& s = slots_.at(inst.operand(0));
    if (!indexed) return s.memory;
    const ir::Value* index = inst.operand(1);
    Value* wide = b_.CreateIntCast(value(index), b_.getInt64Ty(), ir::is_signed(index->type));
    return b_.CreateGEP(s.elem, s.memory, wide);
  }

  Value* get(const ir::Inst& inst) {
    llvm::Type* elem = slot_type(inst.elem);
    Value* v = b_.CreateAlignedLoad(elem, slot_place(inst, inst.operand_count() == 2),
                                    llvm::Align(ir::byte_size(inst.elem)));
    return inst.elem == ir::Type::b1 ? b_.CreateICmpNE(v, b_.getInt8(0)) : v;
  }

  void put(const ir::Inst& inst) {
    Value* v = value(inst.operand(inst.operand_count() - 1));
    if (inst.elem == ir::Type::b1) v = b_.CreateZExt(v, b_.getInt8Ty());
    b_.CreateAlignedStore(v, slot_place(inst, inst.operand_count() == 3),
                          llvm::Align(ir::byte_size(inst.elem)));
  }

  // ---- structure

  void call(const ir::Inst& inst) {
    Value* all = b_.CreateCall(callees_.at(inst.imm), operands(inst));
    for (size_t k = 0; k < inst.results.size(); k++)
      values_[inst.result(k)] = b_.CreateExtractValue(all, unsigned(k));
  }

  void if_else(const ir::Inst& inst) {
    BasicBlock* side[2] = {block("then"), block("else")};
    BasicBlock* join = block("join");
    auto* branch = b_.CreateCondBr(value(inst.operand(0)), side[0], side[1]);
    for (int k = 0; k < 2; k++)
      if (reports_error(inst.region(size_t(k))))
        branch->setMetadata(
            llvm::LLVMContext::MD_prof,
            llvm::MDBuilder(context_).createBranchWeights(k ? 1 << 20 : 1, k ? 1 : 1 << 20));
    Values results[2];
    BasicBlock* end[2];
    for (int k = 0; k < 2; k++) {
      b_.SetInsertPoint(side[k]);
      results[k] = region(inst.region(k));
      end[k] = b_.GetInsertBlock();
      b_.CreateBr(join);
    }
    b_.SetInsertPoint(join);
    for (size_t r = 0; r < inst.results.size(); r++) {
      auto* phi = b_.CreatePHI(type(inst.results[r].type), 2);
      for (int k = 0; k < 2; k++) phi->addIncoming(results[k][r], end[k]);
      values_[inst.result(r)] = phi;
    }
  }

  void any_loop(const ir::Inst& inst) {
    bool outer = brief_;
    brief_ |= combines(inst.region(inst.regions.size() - 1));
    if (inst.is(Op::loop))
      counted_loop(inst);
    else
      while_loop(inst);
    brief_ = outer;
  }

  /// Where carried value k of a loop is only the running fmin or fmax of something: which of them.
  static std::optional<Op> running_extreme(const ir::Inst& loop, size_t k) {
    const ir::Region* body = loop.region(0);
    const ir::Value* arg = body->arg(k + 1);
    const ir::Value* next = body->last->operand(k);
    const ir::Inst* step = next->inst;
    if (!arg->uses || arg->uses->next || arg->uses->user != step || step->parent != body)
      return std::nullopt;
    if (step->is(Op::loop) && step->operand_count() > next->index + 3 &&
        step->operand(next->index + 3) == arg)
      return running_extreme(*step, next->index);
    if (step->is(Op::fmin) || step->is(Op::fmax)) return step->op;
    return std::nullopt;
  }

  /// A running extreme as an integer of the same order: LLVM vectorises the minimum of integers.
  struct Key {
    Op op;
    Value* value;
  };
  Value* key_of(const ir::Value* v, Op op) {
    auto it = keys_.find(v);
    if (it != keys_.end() && it->second.op == op) return it->second.value;
    return emit_key(b_, value(v), op == Op::fmin);
  }
  void set_key(const ir::Value* v, Key key) {
    keys_[v] = key;
    values_[v] = emit_unkey(b_, key.value, type(v->type));
  }

  /// fmin or fmax with a running extreme.
  bool extreme_step(const ir::Inst& inst) {
    if (!inst.is(Op::fmin) && !inst.is(Op::fmax)) return false;
    const ir::Value *x = inst.operand(0), *y = inst.operand(1);
    auto running = [&](const ir::Value* v) {
      auto it = keys_.find(v);
      return it != keys_.end() && it->second.op == inst.op;
    };
    if (!running(x) && !running(y)) return false;
    auto id = inst.is(Op::fmin) ? llvm::Intrinsic::smin : llvm::Intrinsic::smax;
    Value* key = b_.CreateBinaryIntrinsic(id, key_of(x, inst.op), key_of(y, inst.op));
    set_key(inst.result(), {inst.op, key});
    return true;
  }

  /// Rotated: guard, body, test at the end, which LLVM's loop passes want. A step other than 1
  /// counts rounds, so that an index that would wrap ends the loop.
  void counted_loop(const ir::Inst& inst) {
    const ir::Region* body = inst.region(0);
    bool is_signed = ir::is_signed(inst.operand(0)->type);
    Value* lo = value(inst.operand(0));
    Value* hi = value(inst.operand(1));
    Value* step = value(inst.operand(2));
    llvm::Type* t = lo->getType();
    Value* one = llvm::ConstantInt::get(t, 1);
    bool by_one = step == one;
    size_t count = inst.results.size();
    std::vector<std::optional<Op>> extremes;
    Values init;
    for (size_t k = 0; k < count; k++) {
      extremes.push_back(running_extreme(inst, k));
      const ir::Value* v = inst.operand(k + 3);
      init.push_back(extremes[k] ? key_of(v, *extremes[k]) : value(v));
    }

    Value* rounds = nullptr;
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* head = block("loop");
    BasicBlock* after = block("after");
    Value* runs = is_signed ? b_.CreateICmpSLT(lo, hi) : b_.CreateICmpULT(lo, hi);
    if (!by_one) {
      Value* last = b_.CreateSub(b_.CreateSub(hi, lo), one);
      Value* positive = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, step, one);
      rounds = b_.CreateAdd(b_.CreateUDiv(last, positive), one);
    }
    b_.CreateCondBr(runs, head, after);

    b_.SetInsertPoint(head);
    auto phi = [&](Value* first, llvm::Type* of) {
      auto* p = b_.CreatePHI(of, 2);
      p->addIncoming(first, before);
      return p;
    };
    llvm::PHINode* index = phi(lo, t);
    llvm::PHINode* round = by_one ? nullptr : phi(llvm::ConstantInt::get(t, 0), t);
    std::vector<llvm::PHINode*> carried;
    for (Value* v : init) carried.push_back(phi(v, v->getType()));
    values_[body->arg(0)] = index;
    auto define = [&](size_t k, const ir::Value* v, Value* held) {
      if (extremes[k])
        set_key(v, {*extremes[k], held});
      else
        values_[v] = held;
    };
    for (size_t k = 0; k < count; k++) define(k, body->arg(k + 1), carried[k]);

    llvm::MDNode* outer_group = memory_.group();
    llvm::MDNode* group = nullptr;
    if (inst.kind == ir::parallel_walk && !has_atomics(body)) {
      group = llvm::MDNode::getDistinct(context_, {});
      memory_.set_group(group);
    }
    statements(body);
    memory_.set_group(outer_group);
    Values next;
    for (size_t k = 0; k < count; k++) {
      const ir::Value* v = body->last->operand(k);
      next.push_back(extremes[k] ? key_of(v, *extremes[k]) : value(v));
    }

    BasicBlock* latch = b_.GetInsertBlock();
    Value* next_index = b_.CreateAdd(index, step, "", by_one && !is_signed, by_one && is_signed);
    Value* more;
    if (by_one) {
      more = is_signed ? b_.CreateICmpSLT(next_index, hi) : b_.CreateICmpULT(next_index, hi);
    } else {
      Value* next_round = b_.CreateNUWAdd(round, one);
      more = b_.CreateICmpULT(next_round, rounds);
      round->addIncoming(next_round, latch);
    }
    auto* branch = b_.CreateCondBr(more, head, after);
    branch->setMetadata(llvm::LLVMContext::MD_loop, loop_facts(group));
    index->addIncoming(next_index, latch);
    for (size_t k = 0; k < count; k++) carried[k]->addIncoming(next[k], latch);

    b_.SetInsertPoint(after);
    Values results;
    for (size_t k = 0; k < count; k++) {
      auto* result = b_.CreatePHI(init[k]->getType(), 2);
      result->addIncoming(init[k], before);
      result->addIncoming(next[k], latch);
      results.push_back(result);
    }
    for (size_t k = 0; k < count; k++) define(k, inst.result(k), results[k]);
  }

  /// The loop ends; where `group` is given its accesses of different iterations do not depend on
  /// one another (or race, and then any order will do).
  llvm::MDNode* loop_facts(llvm::MDNode* group) {
    auto named = [&](const char* name, llvm::Metadata* value) {
      std::vector<llvm::Metadata*> items = {llvm::MDString::get(context_, name)};
      if (value) items.push_back(value);
      return llvm::MDNode::get(context_, items);
    };
    std::vector<llvm::Metadata*> facts = {nullptr, named("llvm.loop.mustprogress", nullptr)};
    if (group) facts.push_back(named("llvm.loop.parallel_accesses", group));
    if (brief_) {
      auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
      facts.push_back(named("llvm.loop.vectorize.width", one));
      facts.push_back(named("llvm.loop.interleave.count", one));
      facts.push_back(named("llvm.loop.unroll.disable", nullptr));
    }
    llvm::MDNode* id = llvm::MDNode::getDistinct(context_, facts);
    id->replaceOperandWith(0, id);
    return id;
  }

  void while_loop(const ir::Inst& inst) {
    const ir::Region* condition = inst.region(0);
    const ir::Region* body = inst.region(1);
    Values init = operands(inst);
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* head = block("while");
    BasicBlock* inside = block("do");
    BasicBlock* after = block("after");
    b_.CreateBr(head);

    b_.SetInsertPoint(head);
    std::vector<llvm::PHINode*> carried;
    for (size_t k = 0; k < init.size(); k++) {
      carried.push_back(b_.CreatePHI(init[k]->getType(), 2));
      carried[k]->addIncoming(init[k], before);
      values_[condition->arg(k)] = carried[k];
    }
    Values tested = region(condition);
    b_.CreateCondBr(tested[0], inside, after);

    b_.SetInsertPoint(inside);
    for (size_t k = 0; k < init.size(); k++) values_[body->arg(k)] = tested[k + 1];
    Values next = region(body);
    for (size_t k = 0; k < init.size(); k++) carried[k]->addIncoming(next[k], b_.GetInsertBlock());
    b_.CreateBr(head);

    b_.SetInsertPoint(after);
    for (size_t k = 0; k < init.size(); k++) values_[inst.result(k)] = tested[k + 1];
  }

  llvm::LLVMContext& context_;
  const ir::Kernel& kernel_;
  const Machine& machine_;
  const std::vector<llvm::Function*>& callees_;
  Memory memory_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  BasicBlock* entry_ = nullptr;
  bool brief_ = false;  ///< inside a loop that is to be compiled fast
  std::unordered_map<const ir::Value*, Value*> values_;
  std::unordered_map<const ir::Value*, Key> keys_;  ///< running extremes, see emit_key
  std::unordered_map<const ir::Value*, Slot> slots_;
};

void attributes(llvm::Function* f, const Machine& machine) {
  for (const auto& [key, value] : machine.attributes) f->addFnAttr(key, value);
  f->addFnAttr(llvm::Attribute::NoUnwind);
}

llvm::Function* declare_task(llvm::Module& module, const Machine& machine, size_t index,
                             uint64_t args_bytes) {
  auto& context = module.getContext();
  auto* word = llvm::Type::getInt64Ty(context);
  std::vector<llvm::Type*> params = {llvm::PointerType::get(context, machine.args_space)};
  params.resize(machine.builtin ? 2 : 4, word);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), params, false);
  auto* f =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, task_symbol(index), module);
  attributes(f, machine);
  f->addParamAttr(0, llvm::Attribute::NoAlias);
  f->addParamAttr(0, llvm::Attribute::ReadOnly);
  f->addDereferenceableParamAttr(0, args_bytes);
  f->addParamAttr(0, llvm::Attribute::getWithAlignment(context, llvm::Align(8)));
  return f;
}

llvm::Function* declare_callee(llvm::Module& module, const Machine& machine,
                               const ir::Function& source) {
  auto& context = module.getContext();
  std::vector<llvm::Type*> params, results;
  for (const ir::Value& a : source.body->args)
    params.push_back(type_of(context, a.type, machine.global_space));
  for (ir::Type t : source.results) results.push_back(type_of(context, t, machine.global_space));
  auto* type = llvm::FunctionType::get(llvm::StructType::get(context, results), params, false);
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, source.name, module);
  attributes(f, machine);
  return f;
}

}  // namespace

std::unique_ptr<llvm::Module> generate(llvm::LLVMContext& context, const ir::Kernel& kernel,
                                       const Machine& machine) {
  auto module = std::make_unique<llvm::Module>(kernel.name, context);
#if LLVM_VERSION_MAJOR >= 21
  module->setTargetTriple(llvm::Triple(machine.triple));
#else
  module->setTargetTriple(machine.triple);
#endif
  module->setDataLayout(machine.data_layout);
  std::vector<llvm::Function*> callees;
  for (const ir::Function& f : kernel.callees)
    callees.push_back(f.body ? declare_callee(*module, machine, f) : nullptr);
  Emitter emitter(*module, kernel, machine, callees);
  for (size_t k = 0; k < callees.size(); k++)
    if (callees[k]) emitter.callee(callees[k], kernel.callees[k]);
  uint64_t args_bytes = ir::abi::layout(kernel).bytes;
  for (size_t k = 0; k < kernel.tasks.size(); k++) {
    llvm::Function* f = declare_task(*module, machine, k, args_bytes);
    emitter.task(f, kernel.tasks[k]);
    if (machine.finish) machine.finish(*f, kernel.tasks[k]);
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  if (llvm::verifyModule(*module, &out))
    throw InternalError("kernel '" + kernel.name + "' gives LLVM an invalid module: " + text);
  return module;
}

}  // namespace quern::codegen
