#include "ir/passes/footprints.h"

#include <algorithm>
#include <unordered_map>

#include "ir/passes/facts.h"

namespace quern::ir {

namespace {

class Finder {
 public:
  Finder(const Kernel& kernel, Task& task) : kernel_(kernel), task_(task) {}

  void run() {
    task_.footprints.clear();
    walk(task_.body, [&](Inst* inst) {
      if (is_pure(inst->op)) kind(inst->result());  // operands first: no deep recursion later
      Footprint print;
      if (inst->is(Op::load))
        print.access = Access::read;
      else if (inst->is(Op::store))
        print.access = Access::write;
      else if (inst->is(Op::atomic))
        print.access = Access::atomic;
      else
        return;
      if (kernel_.bindings[inst->binding()].kind != Binding::field) return;
      print.binding = inst->binding();
      print.component = inst->component();
      if (inst->is(Op::atomic)) print.atomic_op = inst->atomic();
      describe(inst, print);
      merge(print);
    });
  }

 private:
  static size_t value_count(const Inst* inst) {
    if (inst->is(Op::load)) return 0;
    if (inst->is(Op::store)) return 1;
    if (inst->atomic() == AtomicOp::load) return 0;
    return inst->atomic() == AtomicOp::cas ? 2 : 1;
  }

  void describe(const Inst* inst, Footprint& print) {
    size_t rank = inst->operand_count() - value_count(inst);
    bool offsets = rank == task_.rank && rank <= 8, affinely = true;
    for (size_t k = 0; k < rank; k++) {
      Value* index = inst->operand(k);
      int64_t c = 0;
      offsets = offsets && is_offset(index, k, c);
      affinely = affinely && kind(index) != other;
      if (k < 8) print.lo[k] = print.hi[k] = c;
    }
    print.form = offsets ? Footprint::offset : affinely ? Footprint::affine : Footprint::unknown;
  }

  static const Value* unwidened(const Value* v) {
    while (v->inst && v->inst->is(Op::convert) && is_int(v->type) &&
           preserves(v->inst->operand(0)->type, v->type))
      v = v->inst->operand(0);
    return v;
  }

  /// index == region argument `axis` + c? (Where the sum wraps the index is out of range.)
  bool is_offset(const Value* index, size_t axis, int64_t& c) const {
    index = unwidened(index);
    if (index == task_.body->arg(axis)) return true;
    if (!index->inst || index->inst->operand_count() != 2) return false;
    const Inst* inst = index->inst;
    const Inst* constant = constant_of(inst->operand(1));
    if (!constant || unwidened(inst->operand(0)) != task_.body->arg(axis)) return false;
    c = to_signed(constant->imm, index->type);
    if (inst->is(Op::sub)) c = int64_t(0 - Bits(c));
    return inst->is(Op::add) || inst->is(Op::sub);
  }

  enum Kind : uint8_t { uniform, linear, other };

  Kind kind(const Value* v) {
    if (!v->inst) return v->region == task_.body ? linear : other;
    if (auto found = kinds_.find(v); found != kinds_.end()) return found->second;
    return kinds_[v] = kind(v->inst);
  }

  Kind kind(const Inst* inst) {
    if (!is_pure(inst->op)) return other;
    Kind worst = uniform;
    for (const Use& use : inst->operands) worst = std::max(worst, kind(use.value));
    if (worst != linear) return worst;
    switch (inst->op) {
      case Op::add:
      case Op::sub:
      case Op::neg: return linear;
      case Op::mul:
        return constant_of(inst->operand(0)) || constant_of(inst->operand(1)) ? linear : other;
      case Op::convert:
        return preserves(inst->operand(0)->type, inst->type()) && is_int(inst->type()) ? linear
                                                                                       : other;
      default: return other;
    }
  }

  void merge(const Footprint& print) {
    for (Footprint& old : task_.footprints) {
      if (old.binding != print.binding || old.component != print.component ||
          old.access != print.access || old.atomic_op != print.atomic_op)
        continue;
      old.form = std::max(old.form, print.form);
      for (size_t k = 0; k < 8; k++) {
        old.lo[k] = std::min(old.lo[k], print.lo[k]);
        old.hi[k] = std::max(old.hi[k], print.hi[k]);
      }
      return;
    }
    task_.footprints.push_back(print);
  }

  const Kernel& kernel_;
  Task& task_;
  std::unordered_map<const Value*, Kind> kinds_;
};

}  // namespace

void footprints(Kernel& kernel) {
  for (Task& task : kernel.tasks) Finder(kernel, task).run();
}

}  // namespace quern::ir
