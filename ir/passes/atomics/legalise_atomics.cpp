#include "ir/passes/atomics/legalise_atomics.h"

#include "ir/passes/atomics/atomic_rules.h"

namespace quern::ir {

namespace {

/// The address of an access as a number: the base from the argument block plus all offsets.
Value* number_of(Builder& b, const Value* address) {
  const Inst* inst = address->inst;
  if (inst && inst->is(Op::offset)) return b.add(number_of(b, inst->operand(0)), inst->operand(1));
  if (!inst || !inst->is(Op::arg)) throw InternalError("an atomic's address has no base");
  return b.arg(uint32_t(inst->imm), Type::i64);
}

class Atomics {
 public:
  Atomics(Kernel& kernel, const TargetTraits& target) : target_(target), b_(kernel) {}

  void visit(Inst* inst) {
    if (!inst->is(Op::rmw)) return;
    b_.before(inst).at(inst->loc);
    for (size_t k = 1; k < inst->operand_count(); k++) values_.push_back(inst->operand(k));
    Value* old = nullptr;
    if (bit_width(inst->elem) < 32 && !target_.narrow_atomics)
      old = in_word(inst);
    else if (needs_loop(inst))
      old = loop(inst);
    else if (is_float(inst->elem) && moves_bits(inst->atomic()))
      old = on_bits(inst);
    values_.clear();
    if (!old) return;
    inst->result()->replace_with(old);
    inst->erase();
  }

 private:
  static bool moves_bits(AtomicOp op) {
    return op == AtomicOp::cas || op == AtomicOp::exchange || op == AtomicOp::load;
  }

  bool needs_loop(const Inst* inst) const {
    AtomicOp op = inst->atomic();
    if (op == AtomicOp::mul) return true;
    if (!is_float(inst->elem)) return false;
    bool wide = inst->elem == Type::f64;
    if (op == AtomicOp::add) return !target_.float_atomic_add[wide];
    return (op == AtomicOp::min || op == AtomicOp::max) && !target_.float_atomic_min_max[wide];
  }

  Value* on_bits(Inst* inst) {
    Type bits = bits_type(inst->elem);
    std::vector<Value*> values;
    for (Value* v : values_) values.push_back(b_.bitcast(v, bits));
    Inst* made = b_.rmw(inst->atomic(), inst->operand(0), bits, values, inst->imm);
    return b_.bitcast(made->result(), inst->elem);
  }

  Value* loop(Inst* inst) {
    Type bits = bits_type(inst->elem);
    Value* last = retry(inst->operand(0), bits, inst->imm, [&](Value* seen) {
      return b_.bitcast(updated(b_, inst->atomic(), b_.bitcast(seen, inst->elem), values_), bits);
    });
    return b_.bitcast(last, inst->elem);
  }

  Value* in_word(Inst* inst) {
    Value* address = inst->operand(0);
    Type narrow = unsigned_of(inst->elem);
    Value* number = number_of(b_, address);
    Value* low = b_.binary(Op::bit_and, number, b_.integer(Type::i64, 3));
    Value* word = b_.offset(address, b_.unary(Op::neg, low));
    Value* shift = b_.convert(b_.mul(low, b_.integer(Type::i64, 8)), Type::u32);
    auto part = [&](Value* whole) {
      Value* bits = b_.convert(b_.binary(Op::shr, whole, shift), narrow);
      return b_.bitcast(bits, inst->elem);
    };
    if (inst->atomic() == AtomicOp::load)
      return part(b_.rmw(AtomicOp::load, word, Type::u32, {}, inst->imm)->result());
    Value* field = b_.integer(Type::u32, (int64_t(1) << bit_width(narrow)) - 1);
    Value* others = b_.unary(Op::bit_not, b_.binary(Op::shl, field, shift));
    Value* last = retry(word, Type::u32, inst->imm, [&](Value* seen) {
      Value* next = updated(b_, inst->atomic(), part(seen), values_);
      Value* bits = b_.convert(b_.bitcast(next, narrow), Type::u32);
      Value* kept = b_.binary(Op::bit_and, seen, others);
      return b_.binary(Op::bit_or, kept, b_.binary(Op::shl, bits, shift));
    });
    return part(last);
  }

  /// Compute, compare and swap, again where another came first. The last value seen comes back.
  template <class F>
  Value* retry(Value* address, Type bits, uint64_t alias_class, F&& next) {
    Value* init[2] = {b_.rmw(AtomicOp::load, address, bits, {}, alias_class)->result(),
                      b_.boolean(true)};
    Inst* loop = b_.while_(init);
    Region* around = b_.region();
    Inst* point = b_.point();
    Region* test = loop->region(0);
    b_.at_end(test).yield({test->arg(1), test->arg(0), test->arg(1)});
    Region* body = loop->region(1);
    b_.at_end(body);
    Value* seen = body->arg(0);
    Value* pair[2] = {seen, next(seen)};
    Value* old = b_.rmw(AtomicOp::cas, address, bits, pair, alias_class)->result();
    b_.yield({old, b_.binary(Op::ne, old, seen)});
    b_.at_end(around).before(point);
    return loop->result(0);
  }

  const TargetTraits& target_;
  Builder b_;
  std::vector<Value*> values_;
};

}  // namespace

void legalise_atomics(Kernel& kernel, const TargetTraits& target) {
  Atomics atomics(kernel, target);
  for (Task& task : kernel.tasks) walk(task.body, [&](Inst* inst) { atomics.visit(inst); });
}

}  // namespace quern::ir
