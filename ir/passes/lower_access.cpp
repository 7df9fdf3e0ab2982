#include "ir/passes/lower_access.h"

#include "ir/passes/facts.h"
#include "ir/passes/task_args.h"

namespace quern::ir {

namespace {

class Lowering {
 public:
  Lowering(Kernel& kernel, const abi::Layout& layout, Task& task)
      : kernel_(kernel), layout_(layout), task_(task), b_(kernel), args_(kernel, task) {}

  void run() {
    walk(task_.body, [&](Inst* inst) {
      b_.before(inst).at(inst->loc);
      switch (inst->op) {
        case Op::param: return replace(inst, param(*inst));
        case Op::extent:
          return replace(inst, args_.get(place(*inst).extent(inst->axis()), inst->type()));
        case Op::load: return replace(inst, load(*inst));
        case Op::store: store(*inst); return inst->erase();
        case Op::atomic: return replace(inst, atomic(*inst));
        default: return;
      }
    });
  }

 private:
  struct Target {
    Value* address;
    Type value, storage;
    uint64_t alias_class;
  };

  static void replace(Inst* inst, Value* v) {
    inst->result()->replace_with(v);
    inst->erase();
  }

  const abi::Place& place(const Inst& inst) const { return layout_.places[inst.binding()]; }

  Value* param(const Inst& inst) {
    uint32_t offset = place(inst).value();
    if (inst.type() != Type::b1) return args_.get(offset, inst.type());
    return b_.convert(args_.get(offset, Type::u32), Type::b1);
  }

  Value* load(const Inst& inst) {
    Target t = target(inst);
    return b_.convert(b_.read(t.address, t.storage, t.alias_class), t.value);
  }

  void store(const Inst& inst) {
    Target t = target(inst);
    Value* v = inst.operand(inst.operand_count() - 1);
    b_.write(t.address, b_.convert(v, t.storage), t.alias_class);
  }

  Value* atomic(const Inst& inst) {
    Target t = target(inst);
    std::vector<Value*> values;
    for (size_t k = kernel_.bindings[inst.binding()].rank; k < inst.operand_count(); k++)
      values.push_back(b_.convert(inst.operand(k), t.storage));
    Inst* made = b_.rmw(inst.atomic(), t.address, t.storage, values, t.alias_class);
    return b_.convert(made->result(), t.value);
  }

  Target target(const Inst& inst) {
    const Binding& binding = kernel_.bindings[inst.binding()];
    if (binding.kind == Binding::frame) return cell(inst);
    const Storage& s = binding.components[inst.component()];
    Type storage = s.storage == Type::b1 ? Type::u8 : s.storage;
    Value* address = args_.get(place(inst).base(inst.component()), Type::address);
    for (uint32_t axis = 0; axis < binding.rank; axis++) {
      bool unit = binding.contiguous && axis + 1u == binding.rank;
      Value* stride = unit ? b_.integer(Type::i64, byte_size(storage))
                           : args_.get(place(inst).stride(inst.component(), axis), Type::i64);
      address = b_.offset(address, b_.mul(wide(inst.operand(axis)), stride));
    }
    return {address, s.value, storage, binding.alias_class};
  }

  Target cell(const Inst& inst) {
    Value* address = args_.get(abi::frame_address, Type::address);
    if (inst.component() != 0)
      address = b_.offset(address, b_.integer(Type::i64, 8 * int64_t(inst.component())));
    if (inst.operand_count() == (inst.is(Op::store) ? 2u : 1u)) {
      Value* index = b_.convert(inst.operand(0), Type::i64);
      address = b_.offset(address, b_.mul(index, b_.integer(Type::i64, 8)));
    }
    Type storage = inst.elem == Type::b1 ? Type::u8 : inst.elem;
    return {address, inst.elem, storage, abi::frame_class};
  }

  /// An index in 64 bits.
  Value* wide(Value* index) {
    const Inst* inst = index->inst;
    if (index->type == Type::i32 && inst && (inst->is(Op::add) || inst->is(Op::sub))) {
      Value *x = inst->operand(0), *c = inst->operand(1);
      if (inst->is(Op::add) && constant_of(x)) std::swap(x, c);
      if (never_negative(x) && constant_of(c)) {
        Value* a = b_.convert(x, Type::i64);
        Value* n = b_.integer(Type::i64, to_signed(constant_of(c)->imm, Type::i32));
        return b_.binary(inst->op, a, n);
      }
    }
    return b_.convert(index, Type::i64);
  }

  /// Is `v` the index of a loop that starts at a constant from 0 on?
  static bool never_negative(const Value* v) {
    if (!v->region || !v->region->parent) return false;
    const Inst* loop = v->region->parent;
    const Value* lo = nullptr;
    if (loop->is(Op::parallel)) lo = loop->operand(2 * v->index);
    if (loop->is(Op::loop) && v->index == 0) lo = loop->operand(0);
    return lo && constant_of(lo) && to_signed(constant_of(lo)->imm, lo->type) >= 0;
  }

  Kernel& kernel_;
  const abi::Layout& layout_;
  Task& task_;
  Builder b_;
  TaskArgs args_;
};

}  // namespace

void lower_access(Kernel& kernel) {
  abi::Layout layout = abi::layout(kernel);
  for (Task& task : kernel.tasks) Lowering(kernel, layout, task).run();
}

}  // namespace quern::ir
