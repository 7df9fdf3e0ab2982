#include "ir/passes/lower/lower_access.h"

#include <cstdlib>
#include <unordered_set>
#include <utility>

#include "ir/analysis/affine.h"
#include "ir/analysis/facts.h"
#include "ir/analysis/loops.h"
#include "ir/passes/lower/digits.h"
#include "ir/passes/tasks/task_args.h"

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
        case Op::origin:
          return replace(inst, args_.get(place(*inst).origin(inst->axis()), inst->type()));
        case Op::first: {
          Value* first = args_.get(place(*inst).first(inst->axis()), inst->type());
          firsts_.insert(first);
          return replace(inst, first);
        }
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
    const Type storage = binding.encoding(inst.component());
    const Placement& layout = binding.layout;
    // Components side by side share an address; each is a constant away.
    const uint32_t component = layout.offsets.empty() ? inst.component() : 0;
    Value* address = args_.get(place(inst).base(component), Type::address);
    const uint32_t fast = layout.fast_axis(binding.rank);
    Value* inside = nullptr;
    auto move_along = [&](uint32_t axis) {
      Value* at = outermost_digit(inst, axis, byte_size(storage), inside);
      bool unit = binding.contiguous && axis == fast;
      Value* stride = unit ? b_.integer(Type::i64, layout.bytes(1, byte_size(storage)))
                           : args_.get(place(inst).stride(component, axis), Type::i64);
      address = b_.offset(address, b_.mul(at, stride));
    };
    for (uint32_t axis = 0; axis < binding.rank; axis++)
      if (axis != fast) move_along(axis);
    if (binding.rank > 0) move_along(fast);
    if (inside) address = b_.offset(address, inside);
    if (!layout.offsets.empty() && layout.offsets[inst.component()] != 0)
      address = b_.offset(address, b_.integer(Type::i64, layout.offsets[inst.component()]));
    return {address, binding.components[inst.component()].type, storage, binding.alias_class};
  }

  /// Of an index along an axis; the bytes that the other digits lead to are added to `inside`.
  Value* outermost_digit(const Inst& inst, uint32_t axis, uint32_t width, Value*& inside) {
    const Placement& layout = kernel_.bindings[inst.binding()].layout;
    Value* at = nullptr;
    layout.for_each_digit(axis, [&](uint32_t extent, uint32_t stride) {
      auto [rest, digit] = divide(b_, at ? at : position(inst, axis), extent);
      Value* apart = b_.integer(Type::i64, layout.bytes(stride, width));
      Value* bytes = b_.mul(b_.convert(digit, Type::i64), apart);
      inside = inside ? b_.add(inside, bytes) : bytes;
      at = rest;
    });
    return at ? b_.convert(at, Type::i64) : wide(inst.operand(axis));
  }

  /// Of an index along an axis that has several digits.
  Value* position(const Inst& inst, uint32_t axis) {
    Value* index = inst.operand(axis);
    if (kernel_.bindings[inst.binding()].layout.shifted) {
      Value* origin = args_.get(place(inst).origin(axis), Type::i64);
      return b_.convert(b_.add(wide(index), origin), Type::u64);
    }
    // A position is never negative. Divisions of 32 bits are several times faster.
    return b_.convert(index, bit_width(index->type) <= 32 ? Type::u32 : Type::u64);
  }

  Target cell(const Inst& inst) {
    Value* address = args_.get(abi::frame_address, Type::address);
    if (inst.component() != 0)
      address = b_.offset(address, b_.integer(Type::i64, 8 * int64_t(inst.component())));
    if (inst.operand_count() == (inst.is(Op::store) ? 2u : 1u)) {
      Value* index = b_.convert(inst.operand(0), Type::i64);
      address = b_.offset(address, b_.mul(index, b_.integer(Type::i64, 8)));
    }
    return {address, inst.elem, storage_type(inst.elem), abi::frame_class};
  }

  /// An index in 64 bits.
  Value* wide(Value* index) {
    const Affine& form = forms_.of(index);
    const bool moved = index->type == Type::i32 && form.base() && form.constant != 0;
    if (!moved || std::abs(form.constant) > 1 << 30 || !starts_in_range(form.base()))
      return b_.convert(index, Type::i64);
    Value* base = b_.convert(form.base()->region->arg(form.base()->index), Type::i64);
    return b_.add(base, b_.integer(Type::i64, form.constant));
  }

  /// Is `v` the index of a loop that starts at a constant from 0 on or at a field's first index,
  /// which lies within ±2^30?
  bool starts_in_range(const Value* v) const {
    const std::optional<IndexBounds> bounds = bounds_of(v);
    if (!bounds) return false;
    if (bounds->axis || firsts_.contains(bounds->lo)) return true;
    const Inst* lo = constant_of(bounds->lo);
    return lo && to_signed(lo->imm, lo->type()) >= 0;
  }

  Kernel& kernel_;
  const abi::Layout& layout_;
  Task& task_;
  Builder b_;
  TaskArgs args_;
  AffineForms forms_;
  std::unordered_set<const Value*> firsts_;  ///< values that are a field's first index
};

}  // namespace

void lower_access(Kernel& kernel) {
  abi::Layout layout = abi::layout(kernel);
  for (Task& task : kernel.tasks) Lowering(kernel, layout, task).run();
}

}  // namespace quern::ir
