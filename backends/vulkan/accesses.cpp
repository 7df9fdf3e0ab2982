// Memory and mutable locals.
#include <algorithm>

#include "backends/vulkan/emitter.h"
#include "quern/error.h"

namespace quern::vulkan {

namespace {

/// An array of so many elements is cleared by a loop.
constexpr uint64_t long_array = 132;

/// Of such an array in a round: Mesa unrolls up to 32 rounds, and its software device runs 65,535.
uint64_t cleared_at_once(uint64_t elements) { return std::clamp<uint64_t>(elements / 33, 4, 64); }

}  // namespace

bool is_long_array(const ir::Inst* inst) { return inst->is(Op::slot) && inst->imm >= long_array; }

Id Emitter::pointer(Id address, Type t) {
  if (ir::bit_width(t) == 8) w.capability(spv::Capability::StorageBuffer8BitAccess);
  if (ir::bit_width(t) == 16) w.capability(spv::Capability::StorageBuffer16BitAccess);
  return w.op(Spv::OpConvertUToPtr,
              w.pointer_type(spv::StorageClass::PhysicalStorageBuffer, scalar_.type(t)), {address});
}

Id Emitter::load(Id address, Type t, uint32_t alignment) {
  Type in_memory = ir::storage_type(t);
  const auto access = uint32_t(spv::MemoryAccessMask::Aligned);
  Id v =
      w.op(Spv::OpLoad, scalar_.type(in_memory), {pointer(address, in_memory), access, alignment});
  return scalar_.convert(in_memory, t, v);
}

/// A volatile OpLoad may come from a cache that others do not write to.
Id Emitter::load_of_others(Id address) {
  const Id scope = scalar_.constant(Type::u32, uint32_t(spv::Scope::Device));
  const Id semantics = scalar_.constant(Type::u32, uint32_t(spv::MemorySemanticsMask::Volatile));
  return w.op(Spv::OpAtomicLoad, scalar_.type(Type::u32),
              {pointer(address, Type::u32), scope, semantics});
}

void Emitter::store(Id address, Type t, Id v) {
  Type in_memory = ir::storage_type(t);
  v = scalar_.convert(t, in_memory, v);
  w.effect(Spv::OpStore, {pointer(address, in_memory), v, uint32_t(spv::MemoryAccessMask::Aligned),
                          ir::byte_size(in_memory)});
}

Spv Emitter::atomic_code(AtomicOp op, bool is_signed) {
  switch (op) {
    case AtomicOp::add: return Spv::OpAtomicIAdd;
    case AtomicOp::min: return is_signed ? Spv::OpAtomicSMin : Spv::OpAtomicUMin;
    case AtomicOp::max: return is_signed ? Spv::OpAtomicSMax : Spv::OpAtomicUMax;
    case AtomicOp::bit_and: return Spv::OpAtomicAnd;
    case AtomicOp::bit_or: return Spv::OpAtomicOr;
    case AtomicOp::bit_xor: return Spv::OpAtomicXor;
    case AtomicOp::exchange: return Spv::OpAtomicExchange;
    case AtomicOp::cas: return Spv::OpAtomicCompareExchange;
    case AtomicOp::load: return Spv::OpAtomicLoad;
    case AtomicOp::mul: break;
  }
  throw InternalError("atomic multiplication reached the code generator");
}

Id Emitter::rmw(const ir::Inst& inst) {
  Type t = inst.elem;
  Spv code = Spv::OpAtomicFAddEXT;
  if (t == Type::f32 && inst.atomic() == AtomicOp::add && abilities_.f32_atomic_add) {
    w.capability(spv::Capability::AtomicFloat32AddEXT);
    w.extension("SPV_EXT_shader_atomic_float_add");
  } else if (ir::is_int(t) && ir::bit_width(t) >= 32) {
    code = atomic_code(inst.atomic(), ir::is_signed(t));
  } else {
    throw InternalError("atomic " + std::string(ir::name(inst.atomic())) + " of type " +
                        std::string(ir::name(t)) + " reached the code generator");
  }
  if (ir::bit_width(t) == 64) {
    if (!abilities_.int64_atomics)
      throw Error(inst.loc, "this Vulkan device has no 64-bit atomics");
    w.capability(spv::Capability::Int64Atomics);
  }
  Id scope = scalar_.constant(Type::u32, uint32_t(spv::Scope::Device));
  Id relaxed = scalar_.constant(Type::u32, 0);
  Ids all = {pointer(value(inst.operand(0)), t), scope, relaxed};
  Ids values = operands(inst, 1);
  if (inst.atomic() == AtomicOp::cas)
    all.insert(all.end(), {relaxed, values[1], values[0]});
  else
    all.insert(all.end(), values.begin(), values.end());
  return w.op(code, scalar_.type(t), all);
}

void Emitter::slot(const ir::Inst& inst) {
  Id type = scalar_.type(inst.elem);
  if (inst.imm != 1) type = w.array_type(type, scalar_.constant(Type::u32, inst.imm));
  Id variable = w.local(type);
  slots_[inst.results.data()] = {variable, inst.elem};
  if (inst.kind & ir::unset) return;
  if (is_long_array(&inst))
    clear_long_array(inst, variable);
  else
    w.effect(Spv::OpStore, {variable, w.null(type)});
}

void Emitter::clear_long_array(const ir::Inst& inst, Id variable) {
  Id element = scalar_.type(inst.elem), word = scalar_.type(Type::u32);
  Id place = w.pointer_type(spv::StorageClass::Function, element);
  auto clear = [&](Id index) {
    w.effect(Spv::OpStore, {w.op(Spv::OpAccessChain, place, {variable, index}), w.null(element)});
  };
  auto number = [&](uint64_t n) { return scalar_.constant(Type::u32, n); };
  const uint64_t at_once = cleared_at_once(inst.imm), rest = inst.imm % at_once;
  const Type counter[] = {Type::u32};
  Loop loop = open_loop(counter, {number(0)});
  Id index = loop.carried[0].id;
  end_head(loop);
  test(loop, scalar_.less(Type::u32, index, number(inst.imm - rest)));
  for (uint64_t k = 0; k < at_once; k++) clear(w.op(Spv::OpIAdd, word, {index, number(k)}));
  w.branch(loop.next);
  w.place(loop.next);
  close(loop, {w.op(Spv::OpIAdd, word, {index, number(at_once)})}, inst);
  for (uint64_t k = inst.imm - rest; k < inst.imm; k++) clear(number(k));
}

Id Emitter::slot_place(const ir::Inst& inst, size_t plain) {
  const Slot& s = slots_.at(inst.operand(0));
  if (inst.operand_count() == plain) return s.variable;
  const ir::Value* index = inst.operand(1);
  return w.op(Spv::OpAccessChain, w.pointer_type(spv::StorageClass::Function, scalar_.type(s.elem)),
              {s.variable, scalar_.convert(index->type, Type::u32, value(index))});
}

void Emitter::put(const ir::Inst& inst) {
  w.effect(Spv::OpStore, {slot_place(inst, 2), value(inst.operand(inst.operand_count() - 1))});
}

}  // namespace quern::vulkan
