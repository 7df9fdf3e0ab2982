#include "ir/passes/atomic_rules.h"

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

}  // namespace quern::ir
