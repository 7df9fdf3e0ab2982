#include "ir/passes/atomics/atomic_rules.h"

#include <map>

namespace quern::ir {

Op operation(AtomicOp op, Type type) {
  switch (op) {
    case AtomicOp::add: return Op::add;
    case AtomicOp::mul: return Op::mul;
    case AtomicOp::min: return is_float(type) ? Op::fmin : Op::min;
    case AtomicOp::max: return is_float(type) ? Op::fmax : Op::max;
    case AtomicOp::bit_and: return Op::bit_and;
    case AtomicOp::bit_or: return Op::bit_or;
    case AtomicOp::bit_xor: return Op::bit_xor;
    default: throw InternalError("atomic '" + std::string(name(op)) + "' has no arithmetic");
  }
}

Type bits_type(Type type) {
  if (type == Type::f32) return Type::u32;
  return type == Type::f64 ? Type::u64 : unsigned_of(type);
}

Value* updated(Builder& b, AtomicOp op, Value* old, std::span<Value* const> values) {
  if (op == AtomicOp::exchange) return values[0];
  if (op != AtomicOp::cas) return b.binary(operation(op, old->type), old, values[0]);
  Type bits = old->type == Type::b1 ? Type::b1 : bits_type(old->type);
  Value* before = b.bitcast(old, bits);
  Value* same = b.binary(Op::eq, before, b.bitcast(values[0], bits));
  return b.select(same, values[1], old);
}

bool rounds(AtomicOp op, Type type) {
  return is_float(type) && (op == AtomicOp::add || op == AtomicOp::mul);
}

namespace {

/// What a loop does to the locations of one alias class.
struct Accesses {
  bool alike = true;
  std::vector<Inst*> atomics;
  std::map<Part, AtomicOp> operations;
  bool one_binding = true, one_operation = true;

  void add(Inst* inst) {
    auto first = operations.try_emplace(inst->part, inst->atomic()).first;
    alike &= first->second == inst->atomic();
    if (!atomics.empty()) {
      const Inst* other = atomics.front();
      one_binding &= other->binding() == inst->binding();
      one_operation &= other->atomic() == inst->atomic() && other->elem == inst->elem;
    }
    atomics.push_back(inst);
  }
};

}  // namespace

std::vector<std::vector<Inst*>> combinable_atomics(
    const Kernel& kernel, Region* iteration, const std::function<bool(const Inst*)>& qualifies) {
  std::map<uint32_t, Accesses> classes;
  bool calls = false;
  walk(iteration, [&](Inst* inst) {
    calls |= inst->is(Op::call);
    if (!accesses_element(inst->op) || !kernel.bindings[inst->binding()].has_elements()) return;
    Accesses& all = classes[kernel.bindings[inst->binding()].alias_class];
    const bool good =
        inst->is(Op::atomic) && has_identity(inst->atomic()) && !inst->result()->used() &&
        !(kernel.modes.strict && rounds(inst->atomic(), inst->elem)) && qualifies(inst);
    if (good)
      all.add(inst);
    else
      all.alike = false;
  });
  std::vector<std::vector<Inst*>> found;
  if (calls || classes.count(0)) return found;
  for (auto& [alias_class, all] : classes)
    if (all.alike && (all.one_binding || all.one_operation)) found.push_back(all.atomics);
  return found;
}

}  // namespace quern::ir
