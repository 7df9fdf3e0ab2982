#include "backends/vulkan/emitter.h"

#include <cstddef>

#include "quern/error.h"
#include "quern/ir/abi.h"

namespace quern::vulkan {

namespace {
uint32_t group_of(const ir::Task& task) {
  return group_size(task.kind == ir::Task::serial, task.options.block);
}
}  // namespace

Emitter::Emitter(const ir::Kernel& kernel, size_t task, const Abilities& abilities)
    : kernel_(kernel),
      number_(task),
      task_(kernel.tasks.at(task)),
      abilities_(abilities),
      scalar_(w, kernel.modes),
      block_(w, scalar_, group_of(task_)) {
  for (const ir::Inst* loop : loops_of(task_)) loop_numbers_[loop] = loop_numbers_.size();
}

std::vector<uint32_t> Emitter::run() {
  for (auto c : {spv::Capability::Shader, spv::Capability::VulkanMemoryModel,
                 spv::Capability::VulkanMemoryModelDeviceScope,
                 spv::Capability::PhysicalStorageBufferAddresses})
    w.capability(c);
  float_modes();
  w.execution_mode(spv::ExecutionMode::LocalSize, {group_of(task_), 1, 1});
  w.begin_main();
  constants_ = w.global(spv::StorageClass::PushConstant, constants_type());
  const auto unknown_zero = [&] {
    return w.op(Spv::OpISub, scalar_.type(Type::u64),
                {push_constant(offsetof(PushConstants, fault)),
                 push_constant(offsetof(PushConstants, same_fault))});
  };
  if (abilities_.mesa_software) scalar_.distrust(unknown_zero());
  if (abilities_.flushes_f32)
    scalar_.mend_subnormals(scalar_.convert(Type::u64, Type::u32, unknown_zero()));
  args_ = push_constant(offsetof(PushConstants, args));
  if (task_.kind != ir::Task::serial) number_threads();
  when(allowed(), [&] {
    if (task_.kind != ir::Task::serial && task_.walk == ir::Task::chunked)
      when(scalar_.less(Type::u64, thread_, push_constant(offsetof(PushConstants, chunks))),
           [&] { statements(task_.body); });
    else
      statements(task_.body);
  });
  w.effect(Spv::OpReturn, {});
  return w.finish();
}

void Emitter::float_modes() {
  auto both = [&](bool able, spv::Capability c, spv::ExecutionMode mode) {
    if (!able) return;
    w.capability(c);
    w.execution_mode(mode, {32});
    w.execution_mode(mode, {64});
  };
  both(abilities_.keep_nan, spv::Capability::SignedZeroInfNanPreserve,
       spv::ExecutionMode::SignedZeroInfNanPreserve);
  both(abilities_.round_even, spv::Capability::RoundingModeRTE,
       spv::ExecutionMode::RoundingModeRTE);
  both(abilities_.keep_denorm, spv::Capability::DenormPreserve, spv::ExecutionMode::DenormPreserve);
}

Id Emitter::constants_type() {
  Ids members(sizeof(PushConstants) / 8, scalar_.type(Type::u64));
  Id block = w.struct_type(members);
  w.decorate(block, spv::Decoration::Block);
  for (uint32_t k = 0; k < members.size(); k++)
    w.decorate_member(block, k, spv::Decoration::Offset, {8 * k});
  return block;
}

Id Emitter::push_constant(size_t offset) {
  Id word = scalar_.type(Type::u64);
  Id place = w.op(Spv::OpAccessChain, w.pointer_type(spv::StorageClass::PushConstant, word),
                  {constants_, scalar_.constant(Type::u32, offset / 8)});
  return w.op(Spv::OpLoad, word, {place});
}

Id Emitter::part(Id variable, uint32_t k) {
  Id u32 = scalar_.type(Type::u32);
  Id all = w.op(Spv::OpLoad, w.vector_type(u32, 3), {variable});
  return scalar_.convert(Type::u32, Type::u64, w.op(Spv::OpCompositeExtract, u32, {all, k}));
}

Id Emitter::built_in(spv::BuiltIn which) {
  Id id = w.global(spv::StorageClass::Input, w.vector_type(scalar_.type(Type::u32), 3));
  w.decorate(id, spv::Decoration::BuiltIn, {uint32_t(which)});
  return id;
}

void Emitter::number_threads() {
  Id word = scalar_.type(Type::u64);
  Id place = built_in(spv::BuiltIn::GlobalInvocationId);
  Id groups = built_in(spv::BuiltIn::NumWorkgroups);
  Id row = w.op(Spv::OpIMul, word, {part(groups, 0), scalar_.constant(Type::u64, group_of(task_))});
  threads_ = w.op(Spv::OpIMul, word, {row, part(groups, 1)});
  Id before = w.op(Spv::OpIMul, word, {row, part(place, 1)});
  thread_ = w.op(Spv::OpIAdd, word, {before, part(place, 0)});
}

Id Emitter::allowed() {
  Id both = push_constant(offsetof(PushConstants, guard));
  Id guard = w.op(Spv::OpBitwiseAnd, scalar_.type(Type::u64),
                  {both, scalar_.constant(Type::u64, ~ir::abi::asks_bit)});
  Id guarded = scalar_.convert(Type::u64, Type::b1, guard);
  Id before = w.block(), word = 0, inside = 0;
  when(guarded, [&] {
    word = scalar_.convert(Type::u32, Type::b1, load(guard, Type::u32, 4));
    inside = w.block();
  });
  return w.phi(w.bool_type(), w.boolean(true), before, word, inside);
}

Id Emitter::builtin(ir::Builtin which) {
  Id word = scalar_.type(Type::u64);
  auto iterations = [&] { return push_constant(offsetof(PushConstants, iterations)); };
  auto begin = [&] {
    return w.op(Spv::OpIMul, word, {thread_, push_constant(offsetof(PushConstants, grain))});
  };
  switch (which) {
    case ir::Builtin::thread:
    case ir::Builtin::chunk: return thread_;
    case ir::Builtin::threads: return threads_;
    case ir::Builtin::begin: return begin();
    case ir::Builtin::end: {
      if (task_.kind == ir::Task::serial || task_.walk != ir::Task::chunked) return iterations();
      Id end = w.op(Spv::OpIAdd, word, {begin(), push_constant(offsetof(PushConstants, grain))});
      Id last = iterations();
      return w.op(Spv::OpSelect, word, {scalar_.less(Type::u64, end, last), end, last});
    }
    case ir::Builtin::first_row:
    case ir::Builtin::reciprocal: return push_constant(offsetof(PushConstants, grain));
    case ir::Builtin::rows:
    case ir::Builtin::next_reciprocal: return push_constant(offsetof(PushConstants, chunks));
    case ir::Builtin::block_thread: return scalar_.convert(Type::u32, Type::u64, block_.thread());
    case ir::Builtin::asks:
      return w.op(Spv::OpBitwiseAnd, word,
                  {push_constant(offsetof(PushConstants, guard)),
                   scalar_.constant(Type::u64, ir::abi::asks_bit)});
    case ir::Builtin::iteration: break;
  }
  throw InternalError("builtin '" + std::string(ir::name(which)) + "' reached the code generator");
}

Id Emitter::value(const ir::Value* v) {
  auto it = values_.find(v);
  if (it == values_.end()) throw InternalError("a value is used before it was emitted");
  return it->second;
}

Ids Emitter::operands(const ir::Inst& inst, size_t from) {
  Ids all;
  for (size_t k = from; k < inst.operand_count(); k++)
    if (inst.operand(k)->type != Type::slot) all.push_back(value(inst.operand(k)));
  return all;
}

Ids Emitter::region(const ir::Region* r) {
  statements(r);
  return operands(*r->last);
}

void Emitter::statements(const ir::Region* r) {
  for (const ir::Inst* inst = r->first; inst != r->last; inst = inst->next) emit(*inst);
}

void Emitter::emit(const ir::Inst& inst) {
  switch (inst.op) {
    case Op::if_: return if_else(inst);
    case Op::loop: return counted_loop(inst);
    case Op::while_: return while_loop(inst);
    case Op::slot: return slot(inst);
    case Op::put: return put(inst);
    case Op::call: return call(inst);
    case Op::write: return store(value(inst.operand(0)), inst.elem, value(inst.operand(1)));
    default: values_[inst.results.data()] = single(inst);
  }
}

Id Emitter::single(const ir::Inst& inst) {
  Id word = scalar_.type(Type::u64);
  switch (inst.op) {
    case Op::arg: {
      Id place = w.op(Spv::OpIAdd, word, {args_, scalar_.constant(Type::u64, inst.imm)});
      return load(place, inst.type(), 8);
    }
    case Op::builtin: return builtin(inst.builtin());
    case Op::offset:
      return w.op(Spv::OpIAdd, word, {value(inst.operand(0)), value(inst.operand(1))});
    case Op::read: {
      const Id place = value(inst.operand(0));
      // Others write to the error record while a loop asks.
      if (inst.imm == ir::abi::error_class && inst.elem == Type::u32) return load_of_others(place);
      return load(place, inst.elem, ir::byte_size(inst.elem));
    }
    case Op::rmw: return rmw(inst);
    case Op::block_reduce: return block_.reduce(inst.atomic(), inst.type(), value(inst.operand(0)));
    case Op::get: return w.op(Spv::OpLoad, scalar_.type(inst.elem), {slot_place(inst, 1)});
    default: break;
  }
  Id v = scalar_.row(inst, operands(inst));
  if (!v)
    throw InternalError("operation '" + std::string(ir::info(inst.op).name) +
                        "' reached the code generator");
  return v;
}

}  // namespace quern::vulkan
