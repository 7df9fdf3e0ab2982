#include "ir/passes/optimise/algebra.h"

#include <bit>
#include <cmath>

#include "ir/analysis/facts.h"

namespace quern::ir {

namespace {

class Rules {
 public:
  Rules(Builder& b, const Kernel& kernel, Inst* inst)
      : b_(b), kernel_(kernel), inst_(inst), op_(inst->op), type_(inst->type()) {
    if (inst->operand_count() > 0) x_ = inst->operand(0);
    if (inst->operand_count() > 1) y_ = inst->operand(1);
  }

  Value* apply() {
    if (inst_->operand_count() == 0) return nullptr;
    if (Value* v = folded()) return v;
    constant_to_the_right();
    switch (op_) {
      case Op::convert: return conversion();
      case Op::bitcast: return bit_cast();
      case Op::select: return choice();
      case Op::bit_not: return negation();
      case Op::eq:
      case Op::ne:
      case Op::lt:
      case Op::le:
      case Op::gt:
      case Op::ge: return comparison();
      case Op::offset: return address();
      default: break;
    }
    if (is_float(type_)) return floating();
    if (is_int(type_)) return integer();
    if (type_ == Type::b1) return logic();
    return nullptr;
  }

 private:
  Value* constant(Bits bits) { return b_.constant(type_, bits); }
  Value* number(int64_t n) { return b_.integer(type_, n); }
  Value* truth(bool v) { return b_.boolean(v); }
  static Inst* made_by(Value* v, Op op) { return v->inst && v->inst->is(op) ? v->inst : nullptr; }
  bool all_ones(const Value* v) const {
    const Inst* c = constant_of(v);
    return c && c->imm == truncate(~Bits(0), v->type);
  }

  Value* folded() {
    std::vector<Bits> args;
    for (const Use& use : inst_->operands) {
      const Inst* c = constant_of(use.value);
      if (!c) return nullptr;
      args.push_back(c->imm);
    }
    Type operand = inst_->operand(inst_->operand_count() - 1)->type;
    bool checked = kernel_.modes.checked && kernel_.level != Level::lowered;
    if (checked && fails(op_, operand, type_, args)) return nullptr;
    Bits out = 0;
    return evaluate(op_, operand, type_, args, out) ? constant(out) : nullptr;
  }

  void constant_to_the_right() {
    if (inst_->operand_count() != 2 || !constant_of(x_) || constant_of(y_)) return;
    switch (op_) {
      case Op::lt: inst_->op = Op::gt; break;
      case Op::gt: inst_->op = Op::lt; break;
      case Op::le: inst_->op = Op::ge; break;
      case Op::ge: inst_->op = Op::le; break;
      default:
        if (!has(op_, flag::commutes)) return;
    }
    op_ = inst_->op;
    std::swap(x_, y_);
    inst_->set_operand(0, x_);
    inst_->set_operand(1, y_);
  }

  Value* integer() {
    const Inst* c = y_ ? constant_of(y_) : nullptr;
    switch (op_) {
      case Op::add:
        if (is_constant(y_, 0)) return x_;
        // (a + c1) + c2: index arithmetic of stencils.
        if (c)
          if (Inst* inner = made_by(x_, Op::add))
            if (const Inst* d = constant_of(inner->operand(1)))
              return b_.add(inner->operand(0), constant(c->imm + d->imm));
        return nullptr;
      case Op::sub:
        if (x_ == y_) return number(0);
        if (is_constant(x_, 0)) return b_.unary(Op::neg, y_);
        if (c) return b_.add(x_, constant(Bits(0) - c->imm));
        return nullptr;
      case Op::mul:
        if (is_constant(y_, 0)) return y_;
        if (is_constant(y_, 1)) return x_;
        return nullptr;
      case Op::div:
        if (is_constant(y_, 1)) return x_;
        if (c && is_unsigned(type_) && std::has_single_bit(c->imm))
          return b_.binary(Op::shr, x_, number(std::countr_zero(c->imm)));
        return nullptr;
      case Op::rem:
        if (is_constant(y_, 1)) return number(0);
        if (c && is_unsigned(type_) && std::has_single_bit(c->imm))
          return b_.binary(Op::bit_and, x_, constant(c->imm - 1));
        return nullptr;
      case Op::neg:
        if (Inst* inner = made_by(x_, Op::neg)) return inner->operand(0);
        return nullptr;
      case Op::shl:
      case Op::shr: return is_constant(y_, 0) ? x_ : nullptr;
      case Op::min:
      case Op::max: return x_ == y_ ? x_ : nullptr;
      default: return bits();
    }
  }

  Value* bits() {
    switch (op_) {
      case Op::bit_and:
        if (x_ == y_ || all_ones(y_)) return x_;
        return is_constant(y_, 0) ? y_ : nullptr;
      case Op::bit_or:
        if (x_ == y_ || is_constant(y_, 0)) return x_;
        return all_ones(y_) ? y_ : nullptr;
      case Op::bit_xor:
        if (x_ == y_) return number(0);
        if (is_constant(y_, 0)) return x_;
        return all_ones(y_) ? b_.unary(Op::bit_not, x_) : nullptr;
      default: return nullptr;
    }
  }

  Value* logic() { return bits(); }

  Value* negation() {
    if (Inst* inner = made_by(x_, Op::bit_not)) return inner->operand(0);
    if (type_ != Type::b1 || !x_->inst || x_->inst->operand_count() != 2) return nullptr;
    // A comparison with a NaN is false, so only == and != of floats have an opposite.
    Value *a = x_->inst->operand(0), *c = x_->inst->operand(1);
    bool total = !is_float(a->type);
    switch (x_->inst->op) {
      case Op::eq: return b_.binary(Op::ne, a, c);
      case Op::ne: return b_.binary(Op::eq, a, c);
      case Op::lt: return total ? b_.binary(Op::ge, a, c) : nullptr;
      case Op::le: return total ? b_.binary(Op::gt, a, c) : nullptr;
      case Op::gt: return total ? b_.binary(Op::le, a, c) : nullptr;
      case Op::ge: return total ? b_.binary(Op::lt, a, c) : nullptr;
      default: return nullptr;
    }
  }

  Value* floating() {
    switch (op_) {
      case Op::add:
        if (is_negative_zero(y_)) return x_;
        if (Value* v = negated(y_)) return b_.sub(x_, v);
        if (Value* v = negated(x_)) return b_.sub(y_, v);
        return nullptr;
      case Op::sub:
        if (is_positive_zero(y_)) return x_;
        if (Value* v = negated(y_)) return b_.add(x_, v);
        return nullptr;
      case Op::mul:
        if (is_constant(y_, 1)) return x_;
        return is_constant(y_, -1) ? b_.unary(Op::neg, x_) : nullptr;
      case Op::div:
        if (is_constant(y_, 1)) return x_;
        if (Value* r = exact_reciprocal(y_)) return uncontractible(b_.mul(x_, r));
        return nullptr;
      case Op::neg:
        if (Inst* inner = made_by(x_, Op::neg)) return inner->operand(0);
        return nullptr;
      case Op::stop_gradient: return kernel_.level >= Level::split ? x_ : nullptr;
      case Op::abs:
        if (Inst* inner = made_by(x_, Op::neg)) return b_.unary(Op::abs, inner->operand(0));
        return made_by(x_, Op::abs) ? x_ : nullptr;
      case Op::fma:
        if (is_constant(y_, 1)) return uncontractible(b_.add(x_, inst_->operand(2)));
        return is_constant(x_, 1) ? uncontractible(b_.add(y_, inst_->operand(2))) : nullptr;
      default: return nullptr;
    }
  }

  /// What it is the negative of; null where that must not come next to another operation.
  static Value* negated(Value* v) {
    const Inst* inner = made_by(v, Op::neg);
    return inner && !(inner->kind & uncontracted) ? inner->operand(0) : nullptr;
  }

  /// The program wrote no product, no sum: none may be rounded together with what is around it.
  static Value* uncontractible(Value* made) {
    made->inst->kind |= uncontracted;
    return made;
  }

  static bool is_positive_zero(const Value* v) {
    const Inst* c = constant_of(v);
    return c && c->imm == 0;
  }
  static bool is_negative_zero(const Value* v) {
    const Inst* c = constant_of(v);
    return c && c->imm == bits_of_real(-0.0, v->type);
  }

  /// 1/y where y is a power of two and both are normal: then x/y and x·(1/y) round the same value.
  Value* exact_reciprocal(const Value* y) {
    const Inst* c = constant_of(y);
    if (!c) return nullptr;
    double v = real_of(c->imm, type_);
    int exponent = 0;
    if (std::abs(std::frexp(v, &exponent)) != 0.5) return nullptr;
    int limit = type_ == Type::f16 ? 13 : type_ == Type::f32 ? 125 : 1021;
    if (exponent - 1 > limit || exponent - 1 < -limit) return nullptr;
    return b_.real(type_, 1 / v);
  }

  Value* comparison() {
    Type t = x_->type;
    if (x_ == y_) {
      bool equal = op_ == Op::eq || op_ == Op::le || op_ == Op::ge;
      if (!is_float(t) || !equal) return op_ == Op::ne && is_float(t) ? nullptr : truth(equal);
    }
    if (t == Type::b1 && constant_of(y_) && (op_ == Op::eq || op_ == Op::ne)) {
      bool same = is_constant(y_, 1) == (op_ == Op::eq);
      return same ? x_ : b_.unary(Op::bit_not, x_);
    }
    if (is_unsigned(t) && is_constant(y_, 0)) {
      if (op_ == Op::lt) return truth(false);
      if (op_ == Op::ge) return truth(true);
    }
    // A bool that went through a number and back.
    if (is_constant(y_, 0) && (op_ == Op::eq || op_ == Op::ne))
      if (Inst* inner = made_by(x_, Op::convert))
        if (inner->operand(0)->type == Type::b1)
          return op_ == Op::ne ? inner->operand(0) : b_.unary(Op::bit_not, inner->operand(0));
    return nullptr;
  }

  Value* choice() {
    Value *c = x_, *a = y_, *b = inst_->operand(2);
    if (const Inst* known = constant_of(c)) return known->imm ? a : b;
    if (a == b) return a;
    if (Inst* inner = made_by(c, Op::bit_not)) return b_.select(inner->operand(0), b, a);
    if (type_ != Type::b1) return nullptr;
    if (is_constant(a, 1)) return is_constant(b, 0) ? c : b_.binary(Op::bit_or, c, b);
    if (is_constant(b, 0)) return b_.binary(Op::bit_and, c, a);
    if (is_constant(a, 0)) {
      Value* opposite = b_.unary(Op::bit_not, c);
      return is_constant(b, 1) ? opposite : b_.binary(Op::bit_and, opposite, b);
    }
    return is_constant(b, 1) ? b_.binary(Op::bit_or, b_.unary(Op::bit_not, c), a) : nullptr;
  }

  Value* conversion() {
    if (x_->type == type_) return x_;
    Inst* inner = made_by(x_, Op::convert);
    if (!inner) return nullptr;
    Value* source = inner->operand(0);
    Type from = source->type, through = x_->type;
    // The middle type keeps the value, so only the ends matter; a float out of an integer's range
    // saturates where integers wrap.
    if (preserves(from, through)) {
      bool saturates = is_int(from) && is_float(through) && is_int(type_);
      if (!saturates || preserves(from, type_)) return b_.convert(source, type_);
    }
    bool wraps = is_int(from) && is_int(through) && is_int(type_);
    if (wraps && bit_width(type_) <= bit_width(through)) return b_.convert(source, type_);
    return nullptr;
  }

  Value* bit_cast() {
    if (x_->type == type_) return x_;
    if (Inst* inner = made_by(x_, Op::bitcast)) return b_.bitcast(inner->operand(0), type_);
    return nullptr;
  }

  Value* address() {
    if (is_constant(y_, 0)) return x_;
    if (Value* v = constant_away()) return v;
    const Inst* c = constant_of(y_);
    Inst* inner = c ? made_by(x_, Op::offset) : nullptr;
    const Inst* d = inner ? constant_of(inner->operand(1)) : nullptr;
    return d ? b_.offset(inner->operand(0), b_.constant(Type::i64, c->imm + d->imm)) : nullptr;
  }

  /// An element that is a constant away from another one: base + (a + c) · size. Neighbours then share
  /// all but the last step.
  Value* constant_away() {
    // No address on the way is below 0: no memory lies that low.
    constexpr int64_t furthest = 1 << 16;
    const Inst* scaled = made_by(y_, Op::mul);
    const Inst* size = scaled ? constant_of(scaled->operand(1)) : nullptr;
    const Inst* sum = size ? made_by(scaled->operand(0), Op::add) : nullptr;
    const Inst* ahead = sum ? constant_of(sum->operand(1)) : nullptr;
    if (!ahead || size->imm >= furthest) return nullptr;
    const int64_t places = to_signed(ahead->imm, Type::i64);
    if (places <= -furthest || places >= furthest) return nullptr;
    const int64_t bytes = places * int64_t(size->imm);
    if (bytes <= -furthest || bytes >= furthest) return nullptr;
    Value* near = b_.offset(x_, b_.mul(sum->operand(0), scaled->operand(1)));
    return b_.offset(near, b_.integer(Type::i64, bytes));
  }

  Builder& b_;
  const Kernel& kernel_;
  Inst* inst_;
  Op op_;
  Type type_;
  Value *x_ = nullptr, *y_ = nullptr;
};

}  // namespace

Value* simpler(Builder& b, const Kernel& kernel, Inst* inst) {
  return Rules(b, kernel, inst).apply();
}

}  // namespace quern::ir
