#include "backends/llvm/memory.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "backends/llvm/callees.h"
#include "backends/llvm/scalar.h"
#include "ir/analysis/facts.h"
#include "quern/error.h"
#include "quern/ir/abi.h"

namespace quern::codegen {

using ir::AtomicOp;
using llvm::Value;

namespace {
/// Of a task, that become loops, written out where they stand. More are calls: two blocks each make
/// a body that LLVM takes long over (1,000 of them twenty times as long as their reads).
constexpr int most_rmw_in_place = 24;

/// Of a component's element in memory. Bytes between neighbours are a multiple of it, which loops
/// want to be known: LLVM takes a number of bytes of which it knows nothing for 1, makes vector code
/// of a loop for that alone, and scalar code for what comes.
uint32_t byte_size(const ir::Binding& binding, uint32_t component) {
  return uint32_t(ir::byte_size(binding.encoding(component)));
}

bool may_overlap(uint64_t a, uint64_t b) {
  if (a == b) return true;
  return (a == 0 && b < ir::abi::frame_class) || (b == 0 && a < ir::abi::frame_class);
}
}  // namespace

Memory::Memory(llvm::LLVMContext& context, const Machine& machine, const ir::Kernel& kernel)
    : context_(context), machine_(machine), kernel_(kernel) {
  const ir::abi::Layout layout = ir::abi::layout(kernel);
  for (size_t k = 0; k < kernel.bindings.size(); k++) {
    const ir::Binding& binding = kernel.bindings[k];
    if (binding.kind == ir::Binding::buffer && binding.size.rule == ir::BufferSize::copies)
      copies_.insert(binding.alias_class);
    if (!binding.has_elements()) continue;
    const ir::abi::Place& place = layout.places[k];
    if (binding.alignment > 1) alignments_[place.base(0)] = binding.alignment;
    for (uint32_t c = 0; c < binding.components.size(); c++) {
      const uint32_t aligned = c == 0 ? binding.alignment : 1;
      const uint32_t known = machine.grid ? aligned : std::max(aligned, byte_size(binding, c));
      for (uint32_t axis = 0; known > 1 && axis < binding.rank; axis++)
        alignments_[place.stride(c, axis)] = known;
    }
  }
}

void Memory::begin_task(const ir::Region* body) {
  classes_.clear();
  group_ = nullptr;
  alone_ = nullptr;
  bool calls = false;
  int loops = 0, of_fields = 0;
  ir::walk(const_cast<ir::Region*>(body), [&](const ir::Inst* inst) {
    if (ir::accesses_memory(inst->op)) {
      Scopes& scopes = classes_[inst->imm];
      scopes.written |= ir::has(inst->op, ir::flag::writes) && !ir::is_hint(inst);
      scopes.read |= inst->used();
    }
    calls |= inst->is(ir::Op::call) && is_atomic(kernel_, *inst);
    if (!inst->is(ir::Op::rmw) || ir::is_hint(inst)) return;
    loops += becomes_loop(*inst);
    of_fields += !is_alone(*inst) && inst->imm < ir::abi::frame_class;
  });
  calls_rmw_ = loops > most_rmw_in_place;
  has_few_rmw_ = of_fields <= most_rmw_in_place;
  llvm::MDBuilder md(context_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain();
  for (auto& [id, scopes] : classes_) scopes.scope = md.createAnonymousAliasScope(domain);
  for (auto& [id, scopes] : classes_) {
    std::vector<llvm::Metadata*> others;
    for (auto& [other, theirs] : classes_)
      if (!may_overlap(id, other)) others.push_back(theirs.scope);
    if (!others.empty()) scopes.noalias = llvm::MDNode::get(context_, others);
  }
  std::map<uint64_t, bool> written, read;
  for (auto& [id, scopes] : classes_)
    for (auto& [other, theirs] : classes_) {
      written[id] |= calls || (theirs.written && may_overlap(id, other));
      read[id] |= calls || (theirs.read && may_overlap(id, other));
    }
  for (auto& [id, scopes] : classes_) {
    scopes.written = written[id];
    scopes.read = read[id];
  }
}

bool Memory::is_seen(const ir::Inst& update) const { return classes_.at(update.imm).read; }

void Memory::annotate(llvm::Instruction* access, uint64_t alias_class) {
  const Scopes& scopes = classes_[alias_class];
  if (classes_.size() > 1)
    access->setMetadata(llvm::LLVMContext::MD_alias_scope,
                        llvm::MDNode::get(context_, {scopes.scope}));
  if (scopes.noalias) access->setMetadata(llvm::LLVMContext::MD_noalias, scopes.noalias);
  if (group_) access->setMetadata(llvm::LLVMContext::MD_access_group, group_);
}

llvm::Type* Memory::stored(ir::Type type) {
  return type_of(context_, ir::storage_type(type), machine_.global_space);
}

Value* Memory::loaded(llvm::IRBuilderBase& b, Value* v, ir::Type type) {
  return type == ir::Type::b1 ? b.CreateICmpNE(v, b.getInt8(0)) : v;
}

llvm::SyncScope::ID Memory::scope() {
  if (machine_.atomic_scope.empty()) return llvm::SyncScope::System;
  return context_.getOrInsertSyncScopeID(machine_.atomic_scope);
}

Value* Memory::argument(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* args) {
  Value* place = b.CreateInBoundsGEP(b.getInt8Ty(), args, b.getInt64(inst.imm));
  auto* load = b.CreateAlignedLoad(stored(inst.type()), place, llvm::Align(8));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  if (group_) load->setMetadata(llvm::LLVMContext::MD_access_group, group_);
  auto aligned = alignments_.find(inst.imm);
  if (aligned == alignments_.end()) return loaded(b, load, inst.type());
  if (inst.type() != ir::Type::address)  // a stride: zeros where LLVM looks for them
    return b.CreateAnd(load, b.getInt64(-uint64_t(aligned->second)));
  llvm::Constant* bytes = b.getInt64(aligned->second);
  load->setMetadata(llvm::LLVMContext::MD_align,
                    llvm::MDNode::get(context_, {llvm::ConstantAsMetadata::get(bytes)}));
  return load;
}

Value* Memory::read(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address) {
  auto* load =
      b.CreateAlignedLoad(stored(inst.elem), address, llvm::Align(ir::byte_size(inst.elem)));
  annotate(load, inst.imm);
  if (inst.imm == ir::abi::error_class) {  // others write there while a loop asks
    load->setVolatile(true);
    if (!machine_.grid) load->setAtomic(llvm::AtomicOrdering::Monotonic);
  } else if (machine_.read_only_loads && !classes_[inst.imm].written) {
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  }
  return loaded(b, load, inst.elem);
}

void Memory::write(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address, Value* v) {
  if (inst.elem == ir::Type::b1) v = b.CreateZExt(v, b.getInt8Ty());
  auto* store = b.CreateAlignedStore(v, address, llvm::Align(ir::byte_size(inst.elem)));
  annotate(store, inst.imm);
}

Value* Memory::compare_and_swap(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address,
                                Value* expected, Value* desired) {
  auto* bits = b.getIntNTy(8 * ir::byte_size(inst.elem));
  auto* cas = b.CreateAtomicCmpXchg(
      address, b.CreateBitCast(expected, bits), b.CreateBitCast(desired, bits),
      llvm::Align(ir::byte_size(inst.elem)), llvm::AtomicOrdering::Monotonic,
      llvm::AtomicOrdering::Monotonic, scope());
  annotate(cas, inst.imm);
  return cas;
}

/// For what LLVM has no atomic instruction: compute, compare-and-swap, again where it failed.
Value* Memory::loop_rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address, Value* v) {
  auto* bits = b.getIntNTy(ir::bit_width(inst.elem));
  auto* first = b.CreateAlignedLoad(bits, address, llvm::Align(ir::byte_size(inst.elem)));
  first->setAtomic(llvm::AtomicOrdering::Monotonic, scope());
  annotate(first, inst.imm);
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* again = llvm::BasicBlock::Create(context_, "again", before->getParent());
  auto* done = llvm::BasicBlock::Create(context_, "done", before->getParent());
  b.CreateBr(again);
  b.SetInsertPoint(again);
  auto* seen = b.CreatePHI(bits, 2);
  seen->addIncoming(first, before);
  Value* old = b.CreateBitCast(seen, v->getType());
  Value* desired = emit_combine(b, inst.atomic(), inst.elem, old, v);
  Value* pair = compare_and_swap(b, inst, address, old, desired);
  seen->addIncoming(b.CreateExtractValue(pair, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(pair, 1), done, again);
  b.SetInsertPoint(done);
  return old;
}

/// Does no other thread update the location? The host's threads may look at what is neither a field nor
/// a buffer: the error record, the ring of prints.
bool Memory::is_alone(const ir::Inst& inst) const {
  const bool is_of_kernel =
      inst.imm < ir::abi::frame_class || inst.imm >= ir::abi::first_buffer_class;
  return (machine_.one_thread && is_of_kernel) || copies_.contains(inst.imm);
}

bool Memory::updates_plainly(const ir::Region* body) const {
  bool found = false, plainly = true;
  ir::walk(const_cast<ir::Region*>(body), [&](const ir::Inst* inst) {
    if (!inst->is(ir::Op::rmw) || ir::is_hint(inst)) return;
    found = true;
    plainly &= is_alone(*inst);
  });
  return found && plainly;
}

bool Memory::becomes_loop(const ir::Inst& inst) const {
  if (machine_.grid || is_alone(inst)) return false;
  const AtomicOp op = inst.atomic();
  const bool adds = op == AtomicOp::add, orders = op == AtomicOp::min || op == AtomicOp::max;
  return op == AtomicOp::mul || (ir::is_float(inst.elem) && (adds || orders));
}

/// The function keeps all registers: a body with so many calls lives in them.
Value* Memory::call_rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address, Value* v) {
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  const std::string name =
      "atomic_" + std::string(ir::name(inst.atomic())) + "_" + std::string(ir::name(inst.elem));
  llvm::Function* f = module.getFunction(name);
  if (!f) {
    auto* type = llvm::FunctionType::get(v->getType(),
                                         {address->getType(), v->getType(), b.getInt1Ty()}, false);
    f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
    f->setCallingConv(llvm::CallingConv::PreserveAll);
    const llvm::Function& caller = *b.GetInsertBlock()->getParent();
    f->addFnAttrs(llvm::AttrBuilder(context_, caller.getAttributes().getFnAttrs()));
    f->addFnAttr(llvm::Attribute::NoInline);
    llvm::IRBuilder<> inside(llvm::BasicBlock::Create(context_, "entry", f));
    Value* to_add = f->getArg(1);
    inside.CreateRet(rmw_unless(inside, f->getArg(2), inst, f->getArg(0), {&to_add, 1}));
    for (llvm::Instruction& i : llvm::instructions(f)) i.dropUnknownNonDebugMetadata();
  }
  auto* call = b.CreateCall(f, {address, v, alone_ ? alone_ : b.getFalse()});
  call->setCallingConv(llvm::CallingConv::PreserveAll);
  annotate(call, inst.imm);
  return call;
}

/// Where nothing comes between the read and the write. Loops with one are not marked as parallel,
/// so LLVM keeps the order of those that may meet.
Value* Memory::plain_update(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address,
                            std::span<Value* const> values) {
  const AtomicOp op = inst.atomic();
  const llvm::Align align(ir::byte_size(inst.elem));
  auto* old = b.CreateAlignedLoad(stored(inst.elem), address, align);
  annotate(old, inst.imm);
  if (op == AtomicOp::load) return old;
  Value* updated = nullptr;
  if (op == AtomicOp::exchange) {
    updated = values[0];
  } else if (op == AtomicOp::cas) {
    auto* bits = b.getIntNTy(ir::bit_width(inst.elem));
    Value* same = b.CreateICmpEQ(b.CreateBitCast(old, bits), b.CreateBitCast(values[0], bits));
    updated = b.CreateSelect(same, values[1], old);
  } else {
    updated = emit_combine(b, op, inst.elem, old, values[0]);
  }
  annotate(b.CreateAlignedStore(updated, address, align), inst.imm);
  return old;
}

Value* Memory::rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address,
                   std::span<Value* const> values) {
  AtomicOp op = inst.atomic();
  ir::Type type = inst.elem;
  if (type == ir::Type::b1 || type == ir::Type::address)
    throw InternalError("an atomic of type " + std::string(ir::name(type)) +
                        " reached the code generator");
  if (ir::is_hint(&inst) && !machine_.grid) {
    b.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                      {address, b.getInt32(0), b.getInt32(3), b.getInt32(1)});
    return llvm::PoisonValue::get(stored(type));
  }
  if (is_alone(inst)) return plain_update(b, inst, address, values);
  if (calls_rmw_ && becomes_loop(inst)) return call_rmw(b, inst, address, values[0]);
  if (alone_ && has_few_rmw_ && op != AtomicOp::load && inst.imm < ir::abi::frame_class)
    return rmw_unless(b, alone_, inst, address, values);
  return shared_rmw(b, inst, address, values);
}

Value* Memory::rmw_unless(llvm::IRBuilderBase& b, Value* alone, const ir::Inst& inst,
                          Value* address, std::span<Value* const> values) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* single = llvm::BasicBlock::Create(context_, "single", function);
  auto* shared = llvm::BasicBlock::Create(context_, "shared", function);
  auto* join = llvm::BasicBlock::Create(context_, "join", function);
  b.CreateCondBr(alone, single, shared);
  b.SetInsertPoint(single);
  Value* plain = plain_update(b, inst, address, values);
  b.CreateBr(join);
  b.SetInsertPoint(shared);
  Value* old = shared_rmw(b, inst, address, values);
  llvm::BasicBlock* end = b.GetInsertBlock();
  b.CreateBr(join);
  b.SetInsertPoint(join);
  auto* phi = b.CreatePHI(old->getType(), 2);
  phi->addIncoming(plain, single);
  phi->addIncoming(old, end);
  return phi;
}

Value* Memory::shared_rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address,
                          std::span<Value* const> values) {
  const AtomicOp op = inst.atomic();
  const ir::Type type = inst.elem;
  const llvm::Align align(ir::byte_size(type));
  if (op == AtomicOp::load) {
    auto* load = b.CreateAlignedLoad(stored(type), address, align);
    load->setAtomic(llvm::AtomicOrdering::Monotonic, scope());
    annotate(load, inst.imm);
    return load;
  }
  if (op == AtomicOp::cas) {
    Value* pair = compare_and_swap(b, inst, address, values[0], values[1]);
    return b.CreateBitCast(b.CreateExtractValue(pair, 0), values[0]->getType());
  }
  return emit_rmw(b, inst, address, values[0]);
}

Value* Memory::emit_rmw(llvm::IRBuilderBase& b, const ir::Inst& inst, Value* address, Value* v) {
  const AtomicOp op = inst.atomic();
  const ir::Type type = inst.elem;
  const bool is_float = ir::is_float(type);
  const bool is_order = op == AtomicOp::min || op == AtomicOp::max;
  if (op == AtomicOp::mul || (is_float && is_order)) return loop_rmw(b, inst, address, v);
  using RMW = llvm::AtomicRMWInst;
  RMW::BinOp native = RMW::BAD_BINOP;
  bool is_signed = ir::is_signed(type);
  switch (op) {
    case AtomicOp::add: native = is_float ? RMW::FAdd : RMW::Add; break;
    case AtomicOp::min: native = is_signed ? RMW::Min : RMW::UMin; break;
    case AtomicOp::max: native = is_signed ? RMW::Max : RMW::UMax; break;
    case AtomicOp::bit_and: native = RMW::And; break;
    case AtomicOp::bit_or: native = RMW::Or; break;
    case AtomicOp::bit_xor: native = RMW::Xor; break;
    case AtomicOp::exchange: native = RMW::Xchg; break;
    default: throw InternalError("unknown atomic in the code generator");
  }
  auto* update = b.CreateAtomicRMW(native, address, v, llvm::Align(ir::byte_size(type)),
                                   llvm::AtomicOrdering::Monotonic, scope());
  annotate(update, inst.imm);
  return update;
}

}  // namespace quern::codegen
