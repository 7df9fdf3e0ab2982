// Comparisons: of f32 by its bits where the device takes subnormal numbers for zeros there.
#include "backends/vulkan/arithmetic.h"

namespace quern::vulkan {

using ir::Op;
using ir::Type;
using Spv = spv::Op;

/// A number's bits, below its sign, as an integer of that sign: in the order of the numbers, and 0
/// for both zeros.
Arithmetic::Ordered Arithmetic::ordered(Id x) {
  const Type t = Type::i32;
  const Id bits = w.bitcast(type(t), x);
  const Id magnitude = logic(Op::bit_and, t, bits, constant(t, 0x7fffffff));
  const Id sign = shift(Op::shr, t, bits, constant(t, 31));
  const Id flipped = logic(Op::bit_xor, t, magnitude, sign);
  return {w.op(Spv::OpISub, type(t), {flipped, sign}),
          test(Spv::OpSLessThanEqual, magnitude, constant(t, 0x7f800000))};
}

/// Of numbers neither of which is a NaN.
Id Arithmetic::compare_bits(Spv code, Id x, Id y) {
  const Ordered a = ordered(x), b = ordered(y);
  const Id numbers = test(Spv::OpLogicalAnd, a.is_number, b.is_number);
  return test(Spv::OpLogicalAnd, numbers, test(code, a.order, b.order));
}

Id Arithmetic::less(Type t, Id x, Id y) {
  if (flushes(t)) return compare_bits(Spv::OpSLessThan, x, y);
  return test(ir::is_float(t)    ? Spv::OpFOrdLessThan
              : ir::is_signed(t) ? Spv::OpSLessThan
                                 : Spv::OpULessThan,
              x, y);
}

Id Arithmetic::less_equal(Type t, Id x, Id y) {
  if (flushes(t)) return compare_bits(Spv::OpSLessThanEqual, x, y);
  return test(ir::is_float(t)    ? Spv::OpFOrdLessThanEqual
              : ir::is_signed(t) ? Spv::OpSLessThanEqual
                                 : Spv::OpULessThanEqual,
              x, y);
}

Id Arithmetic::equal(Type t, Id x, Id y) {
  if (flushes(t)) return compare_bits(Spv::OpIEqual, x, y);
  return test(ir::is_float(t) ? Spv::OpFOrdEqual
              : t == Type::b1 ? Spv::OpLogicalEqual
                              : Spv::OpIEqual,
              x, y);
}

Id Arithmetic::not_equal(Type t, Id x, Id y) {
  if (flushes(t)) return test(Spv::OpLogicalNot, equal(t, x, y));
  return test(ir::is_float(t) ? Spv::OpFUnordNotEqual
              : t == Type::b1 ? Spv::OpLogicalNotEqual
                              : Spv::OpINotEqual,
              x, y);
}

}  // namespace quern::vulkan
