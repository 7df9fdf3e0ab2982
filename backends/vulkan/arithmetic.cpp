#include "backends/vulkan/arithmetic.h"

#include <cmath>
#include <limits>

#include "quern/error.h"

namespace quern::vulkan {

using ir::Op;
using ir::Type;
using Spv = spv::Op;

namespace {
ir::Bits sign_bit(Type t) { return ir::Bits(1) << (ir::bit_width(t) - 1); }
Type bits_type(Type t) { return ir::bit_width(t) == 64 ? Type::u64 : Type::u32; }
}  // namespace

Id Arithmetic::type(Type t) {
  if (t == Type::b1) return w.bool_type();
  uint32_t width = ir::bit_width(t);
  if (width == 0)
    throw InternalError("type " + std::string(ir::name(t)) + " reached the code generator");
  if (width == 64)
    w.capability(ir::is_float(t) ? spv::Capability::Float64 : spv::Capability::Int64);
  if (width == 16) w.capability(spv::Capability::Int16);
  if (width == 8) w.capability(spv::Capability::Int8);
  return ir::is_float(t) ? w.float_type(width) : w.int_type(width);
}

Id Arithmetic::constant(Type t, ir::Bits bits) {
  if (t == Type::b1) return w.boolean(bits != 0);
  if (zero_ && ir::is_float(t))
    return w.bitcast(type(t), hidden(bits_type(t), constant(bits_type(t), bits)));
  return w.constant(type(t), ir::bit_width(t), ir::truncate(bits, t));
}

Id Arithmetic::hidden(Type t, Id v) {
  if (!zero_) return v;
  Id zero = ir::bit_width(t) == 64 ? zero_ : w.op(Spv::OpUConvert, type(t), {zero_});
  return w.op(Spv::OpIAdd, type(t), {v, zero});
}

Id Arithmetic::row(const ir::Inst& inst, std::span<const Id> args) {
  if (inst.op == Op::constant) return constant(inst.type(), inst.imm);
  if (args.empty() || inst.results.size() != 1) return 0;
  Type t = inst.operand(inst.operand_count() - 1)->type;
  Id x = args[0];
  Id y = args.size() > 1 ? args[1] : 0;
  Id z = args.size() > 2 ? args[2] : 0;
  switch (inst.op) {
    case Op::add:
    case Op::sub:
    case Op::mul: return add_sub_mul(inst, t, x, y);
    case Op::div:
    case Op::rem: return divide(inst.op, t, x, y);
    case Op::neg: return negate(t, x);
    case Op::abs: return absolute(t, x);
    case Op::min: return select(t, less(t, y, x), y, x);
    case Op::max: return select(t, less(t, x, y), y, x);
    case Op::fmin:
    case Op::fmax: return extreme(inst.op, t, x, y);
    case Op::fma: return math(GLSLstd450Fma, t, {x, y, z});
    case Op::sqrt: return math(GLSLstd450Sqrt, t, {x});
    case Op::floor: return math(GLSLstd450Floor, t, {x});
    case Op::ceil: return math(GLSLstd450Ceil, t, {x});
    case Op::trunc:
    case Op::round: return whole(inst.op, t, x);
    case Op::copysign: return copysign(t, x, y);
    case Op::stop_gradient: return x;
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: return logic(inst.op, t, x, y);
    case Op::bit_not: return w.op(t == Type::b1 ? Spv::OpLogicalNot : Spv::OpNot, type(t), {x});
    case Op::popcount: return popcount(t, x);
    case Op::clz: return leading_zeros(t, x);
    case Op::ctz: return trailing_zeros(t, x);
    case Op::shl:
    case Op::shr: return shift(inst.op, t, x, y);
    case Op::eq: return equal(t, x, y);
    case Op::ne: return not_equal(t, x, y);
    case Op::lt: return less(t, x, y);
    case Op::le: return less_equal(t, x, y);
    case Op::gt: return less(t, y, x);
    case Op::ge: return less_equal(t, y, x);
    case Op::select: return select(t, x, y, z);
    case Op::convert: return convert(t, inst.type(), x);
    case Op::bitcast: return type(t) == type(inst.type()) ? x : w.bitcast(type(inst.type()), x);
    default: return 0;
  }
}

Id Arithmetic::add_sub_mul(const ir::Inst& inst, Type t, Id x, Id y) {
  struct {
    Spv on_ints, on_floats;
  } code = inst.is(Op::add)   ? decltype(code){Spv::OpIAdd, Spv::OpFAdd}
           : inst.is(Op::sub) ? decltype(code){Spv::OpISub, Spv::OpFSub}
                              : decltype(code){Spv::OpIMul, Spv::OpFMul};
  if (!ir::is_float(t)) return w.op(code.on_ints, type(t), {x, y});
  Id v = w.op(code.on_floats, type(t), {x, y});
  bool free = modes_.contract && !modes_.strict && !(inst.kind & ir::uncontracted);
  return free ? v : exact(v);
}

Id Arithmetic::combine(ir::AtomicOp op, Type t, Id x, Id y) {
  using ir::AtomicOp;
  const bool real = ir::is_float(t);
  switch (op) {
    case AtomicOp::add: return w.op(real ? Spv::OpFAdd : Spv::OpIAdd, type(t), {x, y});
    case AtomicOp::mul: return w.op(real ? Spv::OpFMul : Spv::OpIMul, type(t), {x, y});
    case AtomicOp::min: return real ? extreme(Op::fmin, t, x, y) : select(t, less(t, y, x), y, x);
    case AtomicOp::max: return real ? extreme(Op::fmax, t, x, y) : select(t, less(t, x, y), y, x);
    case AtomicOp::bit_and: return logic(Op::bit_and, t, x, y);
    case AtomicOp::bit_or: return logic(Op::bit_or, t, x, y);
    case AtomicOp::bit_xor: return logic(Op::bit_xor, t, x, y);
    default: throw InternalError("atomic '" + std::string(ir::name(op)) + "' has no arithmetic");
  }
}

/// Mesa's software driver makes 0 of -0 in 64 bits, and 1 of 1.5, on CPUs without registers for eight
/// of them; it finds the floor.
Id Arithmetic::whole(Op op, Type t, Id x) {
  if (!zero_ || t != Type::f64)
    return math(op == Op::trunc ? GLSLstd450Trunc : GLSLstd450RoundEven, t, {x});
  const auto floor = [&](Id v) { return math(GLSLstd450Floor, t, {v}); };
  const auto number = [&](double v) { return constant(t, ir::bits_of(v)); };
  const auto exactly = [&](Spv code, Id a, Id b) { return exact(w.op(code, type(t), {a, b})); };
  const Id magnitude = absolute(t, x), below = floor(magnitude);
  if (op == Op::trunc) return copysign(t, below, x);
  const Id rest = exactly(Spv::OpFSub, magnitude, below);
  const Id half = exactly(Spv::OpFMul, below, number(0.5));
  const Id is_odd = test(Spv::OpFOrdNotEqual, floor(half), half);
  const Id tie = test(Spv::OpLogicalAnd, test(Spv::OpFOrdEqual, rest, number(0.5)), is_odd);
  const Id up = test(Spv::OpLogicalOr, test(Spv::OpFOrdGreaterThan, rest, number(0.5)), tie);
  return copysign(t, select(t, up, exactly(Spv::OpFAdd, below, number(1)), below), x);
}

/// The divisor is 1 where the division has no meaning: MIN / 1 is what MIN / -1 must give. Vulkan
/// leaves OpSRem and OpSMod of negative numbers undefined, and NVIDIA's driver uses that.
Id Arithmetic::divide(Op op, Type t, Id x, Id y) {
  if (ir::is_float(t)) return exact(w.op(Spv::OpFDiv, type(t), {x, y}));
  bool is_signed = ir::is_signed(t);
  Id zero = equal(t, y, constant(t, 0));
  Id unsafe = zero;
  if (is_signed) {
    Id lowest = equal(t, x, constant(t, sign_bit(t)));
    Id overflow = logic(Op::bit_and, Type::b1, lowest, equal(t, y, constant(t, ~ir::Bits(0))));
    unsafe = logic(Op::bit_or, Type::b1, zero, overflow);
  }
  Id divisor = select(t, unsafe, constant(t, 1), y);
  Id quotient = w.op(is_signed ? Spv::OpSDiv : Spv::OpUDiv, type(t), {x, divisor});
  if (op == Op::div) return select(t, zero, constant(t, 0), quotient);
  Id whole = w.op(Spv::OpIMul, type(t), {quotient, divisor});
  Id rest = w.op(Spv::OpISub, type(t), {x, whole});
  return select(t, zero, x, rest);
}

/// Skips a NaN; of equal values the one whose sign puts it first (last): -0 is below +0.
Id Arithmetic::extreme(Op op, Type t, Id x, Id y) {
  bool smaller = op == Op::fmin;
  Id first = smaller ? less(t, x, y) : less(t, y, x);
  Id result = select(t, first, x, y);
  Type bits = bits_type(t);
  Id both = logic(smaller ? Op::bit_or : Op::bit_and, bits, w.bitcast(type(bits), x),
                  w.bitcast(type(bits), y));
  result = select(t, equal(t, x, y), w.bitcast(type(t), both), result);
  return select(t, not_equal(t, y, y), x, result);
}

Id Arithmetic::negate(Type t, Id x) {
  return ir::is_float(t) ? exact(w.op(Spv::OpFNegate, type(t), {x}))
                         : w.op(Spv::OpSNegate, type(t), {x});
}

/// By its bits for a float: Mesa takes a square root for positive, which that of -0 is not.
Id Arithmetic::absolute(Type t, Id x) {
  if (ir::is_float(t)) {
    Type bits = bits_type(t);
    Id cleared = logic(Op::bit_and, bits, w.bitcast(type(bits), x), constant(bits, ~sign_bit(t)));
    return w.bitcast(type(t), cleared);
  }
  if (!ir::is_signed(t)) return x;
  return select(t, less(t, x, constant(t, 0)), negate(t, x), x);
}

Id Arithmetic::copysign(Type t, Id x, Id y) {
  Type bits = bits_type(t);
  Id magnitude = logic(Op::bit_and, bits, w.bitcast(type(bits), x), constant(bits, ~sign_bit(t)));
  Id sign = logic(Op::bit_and, bits, w.bitcast(type(bits), y), constant(bits, sign_bit(t)));
  if (flushes(t)) sign = w.op(Spv::OpIAdd, type(bits), {sign, unknown_zero_});
  return w.bitcast(type(t), logic(Op::bit_or, bits, magnitude, sign));
}

Id Arithmetic::logic(Op op, Type t, Id x, Id y) {
  bool logical = t == Type::b1;
  Spv code = op == Op::bit_and  ? (logical ? Spv::OpLogicalAnd : Spv::OpBitwiseAnd)
             : op == Op::bit_or ? (logical ? Spv::OpLogicalOr : Spv::OpBitwiseOr)
                                : (logical ? Spv::OpLogicalNotEqual : Spv::OpBitwiseXor);
  return w.op(code, type(t), {x, y});
}

Id Arithmetic::shift(Op op, Type t, Id x, Id count) {
  count = logic(Op::bit_and, t, count, constant(t, ir::bit_width(t) - 1));
  Spv code = op == Op::shl      ? Spv::OpShiftLeftLogical
             : ir::is_signed(t) ? Spv::OpShiftRightArithmetic
                                : Spv::OpShiftRightLogical;
  return w.op(code, type(t), {x, count});
}

/// Vulkan counts the bits of 32-bit integers only. Of a narrow one that is widened NVIDIA's driver
/// counts what its register has above, but not once that is shifted out.
Id Arithmetic::popcount(Type t, Id x) {
  const Type word = ir::unsigned_of(t);
  auto count = [&](Id part) {
    Id wide = convert(word, Type::u32, part);
    if (const unsigned n = ir::bit_width(t); n < 32)
      wide = shift(Op::shl, Type::u32, wide, constant(Type::u32, 32 - n));
    return w.op(Spv::OpBitCount, type(Type::u32), {wide});
  };
  Id sum = count(x);
  if (ir::bit_width(t) == 64) {
    Id high = count(shift(Op::shr, word, x, constant(word, 32)));
    sum = w.op(Spv::OpIAdd, type(Type::u32), {sum, high});
  }
  return convert(Type::u32, t, sum);
}

/// Those that stay 0 where every bit below the highest 1 is set.
Id Arithmetic::leading_zeros(Type t, Id x) {
  const Type word = ir::unsigned_of(t);
  Id filled = convert(t, word, x);
  for (unsigned by = 1; by < ir::bit_width(t); by *= 2)
    filled = logic(Op::bit_or, word, filled, shift(Op::shr, word, filled, constant(word, by)));
  return convert(word, t, popcount(word, w.op(Spv::OpNot, type(word), {filled})));
}

/// The bits below the lowest 1 are those that x - 1 sets.
Id Arithmetic::trailing_zeros(Type t, Id x) {
  Id less = w.op(Spv::OpISub, type(t), {x, constant(t, 1)});
  return popcount(t, logic(Op::bit_and, t, w.op(Spv::OpNot, type(t), {x}), less));
}

Id Arithmetic::convert(Type from, Type to, Id x) {
  if (from == to) return x;
  if (to == Type::b1) return not_equal(from, x, constant(from, 0));
  if (from == Type::b1) return select(to, x, constant(to, ir::bits_of_int(1, to)), constant(to, 0));
  if (ir::is_float(to)) {
    if (ir::is_float(from)) return float_to_float(from, to, x);
    return w.op(ir::is_signed(from) ? Spv::OpConvertSToF : Spv::OpConvertUToF, type(to), {x});
  }
  if (ir::is_float(from)) return float_to_int(from, to, x);
  if (ir::bit_width(from) == ir::bit_width(to)) return x;
  Id v = w.op(ir::is_signed(from) ? Spv::OpSConvert : Spv::OpUConvert, type(to), {x});
  return zero_ && from == Type::i32 && ir::bit_width(to) == 64 ? hidden(to, v) : v;
}

Id Arithmetic::float_to_float(Type from, Type to, Id x) {
  const Id converted = exact(w.op(Spv::OpFConvert, type(to), {x}));
  if (!flushes_ || from != Type::f32 || to != Type::f64) return converted;
  // A subnormal number is its bits, as an integer, times the smallest number.
  using Limits = std::numeric_limits<float>;
  const Type word = Type::i32;
  const Id bits = w.bitcast(type(word), x);
  const Id magnitude = logic(Op::bit_and, word, bits, constant(word, 0x7fffffff));
  const auto unit = [&](double sign) {
    return constant(to, ir::bits_of(sign * double(Limits::denorm_min())));
  };
  const Id signed_unit = select(to, less(word, bits, constant(word, 0)), unit(-1), unit(1));
  const Id whole = convert(word, to, magnitude);
  const Id product = exact(w.op(Spv::OpFMul, type(to), {whole, signed_unit}));
  const Id is_small = less(word, magnitude, constant(word, ir::bits_of(Limits::min())));
  return select(to, is_small, product, converted);
}

/// NaN gives 0, what does not fit saturates; narrow results go through 32 bits.
Id Arithmetic::float_to_int(Type from, Type to, Id x) {
  unsigned width = ir::bit_width(to);
  bool is_signed = ir::is_signed(to);
  auto real = [&](double v) { return constant(from, ir::bits_of_real(v, from)); };
  Type wide = width >= 32 ? to : is_signed ? Type::i32 : Type::u32;
  Id fits = w.op(is_signed ? Spv::OpConvertFToS : Spv::OpConvertFToU, type(wide), {x});
  fits = convert(wide, to, fits);
  ir::Bits all = ir::truncate(~ir::Bits(0), to);
  Id over = test(Spv::OpFOrdGreaterThanEqual, x, real(std::ldexp(1.0, int(width) - is_signed)));
  Id result = select(to, over, constant(to, is_signed ? all >> 1 : all), fits);
  if (!is_signed) return select(to, less(from, real(0), x), result, constant(to, 0));
  Id under = less(from, x, real(-std::ldexp(1.0, int(width) - 1)));
  result = select(to, under, constant(to, sign_bit(to)), result);
  return select(to, not_equal(from, x, x), constant(to, 0), result);
}

}  // namespace quern::vulkan
