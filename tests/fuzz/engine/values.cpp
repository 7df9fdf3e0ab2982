#include "tests/fuzz/engine/values.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace quern::fuzz {

using namespace ir;

namespace {
constexpr Type scalars[] = {Type::b1,  Type::i8,  Type::i16, Type::i32, Type::i64, Type::u8,
                            Type::u16, Type::u32, Type::u64, Type::f16, Type::f32, Type::f64};
}

Bits interesting(Random& random, Type type) {
  if (type == Type::b1) return random.below(2);
  if (is_int(type)) {
    Bits top = Bits(1) << (bit_width(type) - 1);
    switch (random.below(6)) {
      case 0:
        return truncate(std::vector<Bits>{top, top - 1, ~Bits(0), top + 1}[random.below(4)], type);
      case 1: return truncate(random.word(), type);
      default: return bits_of_int(int64_t(random.below(19)) - 6, type);
    }
  }
  switch (random.below(6)) {
    case 0: {
      const double special[] = {0.0,
                                -0.0,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN(),
                                1e30,
                                -3e-39,
                                5e-324,
                                0x1p31,
                                0x1p63,
                                16777217.0,
                                1e-30,
                                65504,
                                65520,
                                2049,
                                0x1p-24,
                                -0x1.ff8p-15,
                                0x1p-25};
      return bits_of_real(special[random.below(std::size(special))], type);
    }
    case 1: return truncate(random.word(), type);
    case 2: return bits_of_real(double(int64_t(random.word())) * 0x1p-60, type);
    default: return bits_of_real(double(int64_t(random.below(33)) - 12) * 0.5, type);
  }
}

Values::Values(Builder& b, Random& random, bool checked, bool floats)
    : b_(b), random_(random), checked_(checked), floats_(floats), types_{Type::b1, Type::i32} {
  while (types_.size() < 4 || (types_.size() < 8 && random.chance(60))) {
    const Type type = scalars[random.below(std::size(scalars))];
    if (floats || !is_float(type)) types_.push_back(type);
  }
  for (int op = 0; op < op_count; op++)
    table_.insert(table_.end(), size_t(info(Op(op)).weight), Op(op));
}

Value* Values::value(Type type) {
  if (!random_.chance(12)) {
    // Late values are likelier: chains grow deep.
    for (int attempt = 0; attempt < 12 && !reach_.empty(); attempt++) {
      size_t back = std::min(random_.below(reach_.size()), random_.below(reach_.size()));
      Value* v = reach_[reach_.size() - 1 - back];
      if (v->type == type) return v;
    }
    if (type == Type::b1 && !reach_.empty() && random_.chance(70)) return comparison();
    if (random_.chance(60) && !reach_.empty()) return convert(random_.pick(reach_), type);
  }
  return b_.constant(type, interesting(random_, type));
}

Value* Values::comparison() {
  const Op ops[] = {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge};
  Value* x = random_.pick(reach_);
  for (int attempt = 0; attempt < 4 && !is_number(x->type); attempt++) x = random_.pick(reach_);
  Op op = ops[random_.below(is_number(x->type) ? 6 : 2)];
  return b_.binary(op, x, value(x->type));
}

bool Values::takes(Op op, Type type) const {
  const OpInfo& i = info(op);
  return type == Type::b1 ? i.bools : is_int(type) ? i.ints : i.floats;
}

Value* Values::number(Value* v) {
  if (!is_float(v->type)) return v;
  return b_.select(b_.binary(Op::ne, v, v), b_.real(v->type, 1), v);
}

Value* Values::convert(Value* v, Type to) {
  if (v->type == to) return v;
  if (checked_ && is_float(v->type) && is_int(to)) {
    Value* low = b_.real(v->type, is_signed(to) ? -100 : 0);
    Value* fits = b_.binary(Op::bit_and, b_.binary(Op::ge, v, low),
                            b_.binary(Op::le, v, b_.real(v->type, 100)));
    v = b_.select(fits, v, b_.real(v->type, 2));
  }
  return b_.convert(v, to);
}

Value* Values::bitcast(Type type) {
  for (int attempt = 0; attempt < 8; attempt++) {
    Type to = scalars[random_.below(std::size(scalars))];
    if (is_float(to) && !floats_) continue;
    if (to != type && bit_width(to) == bit_width(type) && to != Type::b1)
      return b_.bitcast(number(value(type)), to);
  }
  return value(type);
}

Value* Values::binary(Op op, Type type) {
  Value *x = value(type), *y = value(type);
  if (checked_ && is_int(type) && (op == Op::div || op == Op::rem))
    y = b_.binary(Op::bit_or, y, b_.integer(type, 1));
  if (op == Op::copysign) y = number(y);
  return b_.binary(op, x, y);
}

void Values::operation() {
  Op op = random_.pick(table_);
  Type t = type();
  for (int attempt = 0; attempt < 20 && !takes(op, t); attempt++) {
    t = type();
    if (attempt % 4 == 3) op = random_.pick(table_);
  }
  if (!takes(op, t)) return;
  if (op == Op::convert) return add(convert(value(t), type()));
  if (op == Op::bitcast) return add(t == Type::b1 ? value(t) : bitcast(t));
  if (op == Op::select) return add(b_.select(condition(), value(t), value(t)));
  if (op == Op::fma) return add(b_.fma(value(t), value(t), value(t)));
  add(info(op).operands == 1 ? b_.unary(op, value(t)) : binary(op, t));
}

Value* Values::index(Value* extent) {
  Type t = extent->type;
  Value* v = value(random_.chance(70) ? t : type());
  Value* i = convert(v, t);
  if (random_.chance(30)) i = b_.add(i, b_.integer(t, int64_t(random_.below(5)) - 2));
  Value *zero = b_.integer(t, 0), *one = b_.integer(t, 1);
  if (random_.chance(50))
    return b_.binary(Op::max, zero, b_.binary(Op::min, i, b_.sub(extent, one)));
  Value* r = b_.binary(Op::rem, i, extent);
  return is_signed(t) ? b_.select(b_.lt(r, zero), b_.add(r, extent), r) : r;
}

}  // namespace quern::fuzz
