#include "backends/vulkan/codegen.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "backends/vulkan/block.h"
#include "quern/error.h"
#include "quern/ir/abi.h"

namespace quern::vulkan {

using ir::AtomicOp;
using ir::Op;
using ir::Type;
using Spv = spv::Op;

namespace {

/// An array of so many elements is cleared by a loop.
constexpr uint64_t long_array = 132;

/// Of such an array in a round: Mesa unrolls up to 32 rounds, and its software device runs 65,535.
uint64_t cleared_at_once(uint64_t elements) { return std::clamp<uint64_t>(elements / 33, 4, 64); }

bool is_long_array(const ir::Inst* inst) { return inst->is(Op::slot) && inst->imm >= long_array; }

uint32_t group_of(const ir::Task& task) {
  return group_size(task.kind == ir::Task::serial, task.options.block);
}

using Ids = std::vector<Id>;

class Emitter {
 public:
  Emitter(const ir::Kernel& kernel, size_t task, const Abilities& abilities)
      : kernel_(kernel),
        number_(task),
        task_(kernel.tasks.at(task)),
        abilities_(abilities),
        scalar_(w, kernel.modes),
        block_(w, scalar_, group_of(task_)) {
    for (const ir::Inst* loop : loops_of(task_)) loop_numbers_[loop] = loop_numbers_.size();
  }

  std::vector<uint32_t> run() {
    for (auto c : {spv::Capability::Shader, spv::Capability::VulkanMemoryModel,
                   spv::Capability::VulkanMemoryModelDeviceScope,
                   spv::Capability::PhysicalStorageBufferAddresses})
      w.capability(c);
    float_modes();
    w.execution_mode(spv::ExecutionMode::LocalSize, {group_of(task_), 1, 1});
    w.begin_main();
    constants_ = w.global(spv::StorageClass::PushConstant, constants_type());
    if (abilities_.mesa_software)
      scalar_.distrust(w.op(Spv::OpISub, scalar_.type(Type::u64),
                            {push_constant(offsetof(PushConstants, fault)),
                             push_constant(offsetof(PushConstants, same_fault))}));
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

 private:
  // ---- what surrounds the task's own code

  void float_modes() {
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
    both(abilities_.keep_denorm, spv::Capability::DenormPreserve,
         spv::ExecutionMode::DenormPreserve);
  }

  Id constants_type() {
    Ids members(sizeof(PushConstants) / 8, scalar_.type(Type::u64));
    Id block = w.struct_type(members);
    w.decorate(block, spv::Decoration::Block);
    for (uint32_t k = 0; k < members.size(); k++)
      w.decorate_member(block, k, spv::Decoration::Offset, {8 * k});
    return block;
  }

  Id push_constant(size_t offset) {
    Id word = scalar_.type(Type::u64);
    Id place = w.op(Spv::OpAccessChain, w.pointer_type(spv::StorageClass::PushConstant, word),
                    {constants_, scalar_.constant(Type::u32, offset / 8)});
    return w.op(Spv::OpLoad, word, {place});
  }

  /// Part `k` of a three-component built-in variable, in 64 bits.
  Id part(Id variable, uint32_t k) {
    Id u32 = scalar_.type(Type::u32);
    Id all = w.op(Spv::OpLoad, w.vector_type(u32, 3), {variable});
    return scalar_.convert(Type::u32, Type::u64, w.op(Spv::OpCompositeExtract, u32, {all, k}));
  }
  Id built_in(spv::BuiltIn which) {
    Id id = w.global(spv::StorageClass::Input, w.vector_type(scalar_.type(Type::u32), 3));
    w.decorate(id, spv::Decoration::BuiltIn, {uint32_t(which)});
    return id;
  }

  void number_threads() {
    Id word = scalar_.type(Type::u64);
    Id place = built_in(spv::BuiltIn::GlobalInvocationId);
    Id groups = built_in(spv::BuiltIn::NumWorkgroups);
    Id row =
        w.op(Spv::OpIMul, word, {part(groups, 0), scalar_.constant(Type::u64, group_of(task_))});
    threads_ = w.op(Spv::OpIMul, word, {row, part(groups, 1)});
    Id before = w.op(Spv::OpIMul, word, {row, part(place, 1)});
    thread_ = w.op(Spv::OpIAdd, word, {before, part(place, 0)});
  }

  template <class F>
  void when(Id condition, F&& then) {
    Id inside = w.make_id(), after = w.make_id();
    w.effect(Spv::OpSelectionMerge, {after, 0});
    w.branch(condition, inside, after);
    w.place(inside);
    then();
    w.branch(after);
    w.place(after);
  }

  /// No guard, or its word is not 0.
  Id allowed() {
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

  Id builtin(ir::Builtin which) {
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
    throw InternalError("builtin '" + std::string(ir::name(which)) +
                        "' reached the code generator");
  }

  // ---- values and statements

  Id value(const ir::Value* v) {
    auto it = values_.find(v);
    if (it == values_.end()) throw InternalError("a value is used before it was emitted");
    return it->second;
  }
  Ids operands(const ir::Inst& inst, size_t from = 0) {
    Ids all;
    for (size_t k = from; k < inst.operand_count(); k++)
      if (inst.operand(k)->type != Type::slot) all.push_back(value(inst.operand(k)));
    return all;
  }
  /// Emits a region; the values of its terminator come back.
  Ids region(const ir::Region* r) {
    statements(r);
    return operands(*r->last);
  }
  void statements(const ir::Region* r) {
    for (const ir::Inst* inst = r->first; inst != r->last; inst = inst->next) emit(*inst);
  }

  void emit(const ir::Inst& inst) {
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

  Id single(const ir::Inst& inst) {
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
        // Others write to the error record while a loop asks.
        const bool is_volatile = inst.imm == ir::abi::error_class;
        return load(value(inst.operand(0)), inst.elem, ir::byte_size(inst.elem), is_volatile);
      }
      case Op::rmw: return rmw(inst);
      case Op::block_reduce:
        return block_.reduce(inst.atomic(), inst.type(), value(inst.operand(0)));
      case Op::get: return w.op(Spv::OpLoad, scalar_.type(inst.elem), {slot_place(inst, 1)});
      default: break;
    }
    Id v = scalar_.row(inst, operands(inst));
    if (!v)
      throw InternalError("operation '" + std::string(ir::info(inst.op).name) +
                          "' reached the code generator");
    return v;
  }

  // ---- memory

  static Type stored(Type t) { return t == Type::b1 ? Type::u8 : t; }

  Id pointer(Id address, Type t) {
    if (ir::bit_width(t) == 8) w.capability(spv::Capability::StorageBuffer8BitAccess);
    if (ir::bit_width(t) == 16) w.capability(spv::Capability::StorageBuffer16BitAccess);
    return w.op(Spv::OpConvertUToPtr,
                w.pointer_type(spv::StorageClass::PhysicalStorageBuffer, scalar_.type(t)),
                {address});
  }

  Id load(Id address, Type t, uint32_t alignment, bool is_volatile = false) {
    Type in_memory = stored(t);
    uint32_t access = uint32_t(spv::MemoryAccessMask::Aligned);
    if (is_volatile) access |= uint32_t(spv::MemoryAccessMask::Volatile);
    Id v = w.op(Spv::OpLoad, scalar_.type(in_memory),
                {pointer(address, in_memory), access, alignment});
    return scalar_.convert(in_memory, t, v);
  }

  void store(Id address, Type t, Id v) {
    Type in_memory = stored(t);
    v = scalar_.convert(t, in_memory, v);
    w.effect(Spv::OpStore, {pointer(address, in_memory), v,
                            uint32_t(spv::MemoryAccessMask::Aligned), ir::byte_size(in_memory)});
  }

  static Spv atomic_code(AtomicOp op, bool is_signed) {
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

  /// Relaxed, for the whole device.
  Id rmw(const ir::Inst& inst) {
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

  // ---- slots

  struct Slot {
    Id variable;
    Type elem;
  };

  void slot(const ir::Inst& inst) {
    Id type = scalar_.type(inst.elem);
    if (inst.imm != 1) type = w.array_type(type, scalar_.constant(Type::u32, inst.imm));
    Id variable = w.local(type);
    slots_[inst.results.data()] = {variable, inst.elem};
    if (is_long_array(&inst))
      clear_long_array(inst, variable);
    else
      w.effect(Spv::OpStore, {variable, w.null(type)});
  }

  /// Drivers take the store of a whole array apart, which takes Mesa's software device time in
  /// proportion to the square of the length.
  void clear_long_array(const ir::Inst& inst, Id variable) {
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

  /// `plain`: operands of an access without an index.
  Id slot_place(const ir::Inst& inst, size_t plain) {
    const Slot& s = slots_.at(inst.operand(0));
    if (inst.operand_count() == plain) return s.variable;
    const ir::Value* index = inst.operand(1);
    return w.op(Spv::OpAccessChain,
                w.pointer_type(spv::StorageClass::Function, scalar_.type(s.elem)),
                {s.variable, scalar_.convert(index->type, Type::u32, value(index))});
  }

  void put(const ir::Inst& inst) {
    w.effect(Spv::OpStore, {slot_place(inst, 2), value(inst.operand(inst.operand_count() - 1))});
  }

  // ---- structure

  void define(std::span<ir::Value> results, const Ids& values) {
    for (size_t k = 0; k < results.size(); k++) values_[&results[k]] = values[k];
  }

  /// Emitted in place: SPIR-V forbids recursion, and so does Quern.
  void call(const ir::Inst& inst) {
    const ir::Region* body = kernel_.callees.at(inst.imm).body;
    define(body->args, operands(inst));
    define(inst.results, region(body));
  }

  void if_else(const ir::Inst& inst) {
    Id start[2] = {w.make_id(), w.make_id()};
    Id join = w.make_id();
    w.effect(Spv::OpSelectionMerge, {join, 0});
    w.branch(value(inst.operand(0)), start[0], start[1]);
    Ids results[2];
    Id end[2];
    for (int k = 0; k < 2; k++) {
      w.place(start[k]);
      results[k] = region(inst.region(k));
      end[k] = w.block();
      w.branch(join);
    }
    w.place(join);
    Ids joined;
    for (size_t k = 0; k < inst.results.size(); k++)
      joined.push_back(
          w.phi(scalar_.type(inst.results[k].type), results[0][k], end[0], results[1][k], end[1]));
    define(inst.results, joined);
  }

  struct Loop {
    Id before, head, next, after;
    Id trace = 0;  ///< differs from the fault address where the last test said to go on
    std::vector<SpirvWriter::OpenPhi> carried;
  };
  /// Starts a loop whose head carries `init`.
  Loop open_loop(std::span<const Type> types, const Ids& init) {
    Loop loop{w.block(), w.make_id(), w.make_id(), w.make_id(), 0, {}};
    w.branch(loop.head);
    w.place(loop.head);
    for (size_t k = 0; k < init.size(); k++)
      loop.carried.push_back(w.open_phi(scalar_.type(types[k]), init[k], loop.before, loop.next));
    return loop;
  }
  /// Ends the head: the next code decides with `test`.
  void end_head(const Loop& loop) {
    Id start = w.make_id();
    w.effect(Spv::OpLoopMerge, {loop.after, loop.next, 0});
    w.branch(start);
    w.place(start);
  }
  void test(Loop& loop, Id condition) {
    if (abilities_.mesa_software) {
      // Compilers know that `condition` is false behind the loop, but not what this sum is.
      Id number = scalar_.convert(Type::b1, Type::u64, condition);
      loop.trace = w.op(Spv::OpIAdd, scalar_.type(Type::u64),
                        {number, push_constant(offsetof(PushConstants, fault))});
    }
    Id inside = w.make_id();
    w.branch(condition, inside, loop.after);
    w.place(inside);
  }
  static Ids ids(const Loop& loop) {
    Ids all;
    for (auto& phi : loop.carried) all.push_back(phi.id);
    return all;
  }

  /// Carries the index, the values, and whether the index has not wrapped (by a step of 1 it never
  /// does: it is below `hi`).
  void counted_loop(const ir::Inst& inst) {
    const ir::Region* body = inst.region(0);
    Type t = inst.operand(0)->type;
    Id hi = value(inst.operand(1)), step = value(inst.operand(2));
    const ir::Inst* constant = inst.operand(2)->inst;
    bool by_one = constant && constant->is(Op::constant) && constant->imm == 1;
    bool may_wrap = !by_one && inst.kind != ir::thread_walk;
    std::vector<Type> types = {t};
    Ids init = {value(inst.operand(0))};
    for (size_t k = 3; k < inst.operand_count(); k++) {
      types.push_back(inst.operand(k)->type);
      init.push_back(value(inst.operand(k)));
    }
    if (may_wrap) {
      types.push_back(Type::b1);
      init.push_back(w.boolean(true));
    }
    Loop loop = open_loop(types, init);
    Ids carried = ids(loop);
    Id index = carried[0];
    define(body->args, carried);
    end_head(loop);
    Id more = scalar_.less(t, index, hi);
    if (may_wrap) more = w.op(Spv::OpLogicalAnd, w.bool_type(), {more, carried.back()});
    test(loop, more);
    Ids next = region(body);
    w.branch(loop.next);
    w.place(loop.next);
    next.insert(next.begin(), w.op(Spv::OpIAdd, scalar_.type(t), {index, step}));
    if (may_wrap) next.push_back(scalar_.less(t, index, next[0]));
    close(loop, next, inst);
    carried.erase(carried.begin());
    define(inst.results, carried);
  }

  void while_loop(const ir::Inst& inst) {
    std::vector<Type> types;
    for (const ir::Value& v : inst.results) types.push_back(v.type);
    Loop loop = open_loop(types, operands(inst));
    define(inst.region(0)->args, ids(loop));
    end_head(loop);
    Ids tested = region(inst.region(0));
    test(loop, tested[0]);
    tested.erase(tested.begin());
    define(inst.region(1)->args, tested);
    Ids next = region(inst.region(1));
    w.branch(loop.next);
    w.place(loop.next);
    close(loop, next, inst);
    define(inst.results, tested);
  }

  /// From the block `next` back to the head; goes on behind the loop.
  void close(const Loop& loop, const Ids& next, const ir::Inst& inst) {
    for (size_t k = 0; k < next.size(); k++) w.close(loop.carried[k], next[k]);
    w.branch(loop.head);
    w.place(loop.after);
    if (!abilities_.mesa_software) return;
    Id fault = push_constant(offsetof(PushConstants, same_fault));
    Id cut = w.op(Spv::OpINotEqual, w.bool_type(), {loop.trace, fault});
    when(cut, [&] { report_cut(inst); });
  }

  void report_cut(const ir::Inst& inst) {
    auto it = loop_numbers_.find(&inst);
    uint64_t loop = it == loop_numbers_.end() ? 0xffff : std::min<size_t>(it->second + 1, 0xffff);
    Id word = scalar_.type(Type::u64);
    Id where = scalar_.constant(Type::u64, loop | uint64_t(number_ & 0xffff) << 16);
    Id id = w.op(Spv::OpShiftLeftLogical, word,
                 {push_constant(offsetof(PushConstants, id)), scalar_.constant(Type::u64, 32)});
    // The loops around it are cut with it: the first report stays.
    Id fault = push_constant(offsetof(PushConstants, fault));
    Id first = w.op(Spv::OpIEqual, w.bool_type(),
                    {load(fault, Type::u64, 8), scalar_.constant(Type::u64, 0)});
    when(first, [&] { store(fault, Type::u64, w.op(Spv::OpBitwiseOr, word, {id, where})); });
  }

  const ir::Kernel& kernel_;
  size_t number_;
  const ir::Task& task_;
  const Abilities& abilities_;
  std::unordered_map<const ir::Inst*, size_t> loop_numbers_;
  SpirvWriter w;
  Arithmetic scalar_;
  Block block_;
  Id constants_ = 0, args_ = 0, thread_ = 0, threads_ = 0;
  std::unordered_map<const ir::Value*, Id> values_;
  std::unordered_map<const ir::Value*, Slot> slots_;
};

}  // namespace

std::vector<const ir::Inst*> loops_of(const ir::Task& task) {
  std::vector<const ir::Inst*> loops;
  ir::walk(task.body, [&](const ir::Inst* inst) {
    if (inst->is(Op::loop) || inst->is(Op::while_) || is_long_array(inst)) loops.push_back(inst);
  });
  return loops;
}

std::vector<uint32_t> generate(const ir::Kernel& kernel, size_t task, const Abilities& abilities) {
  return Emitter(kernel, task, abilities).run();
}

}  // namespace quern::vulkan
