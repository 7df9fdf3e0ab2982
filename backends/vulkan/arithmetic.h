#pragma once
// The element-wise rows of the operation table as SPIR-V.
#include "backends/vulkan/spirv_writer.h"
#include "quern/ir/ir.h"

namespace quern::vulkan {

/// Emits element-wise operations with exactly the meaning of ir::evaluate, as far as the device
/// rounds + − × ÷ √ correctly. Integers of either signedness share one SPIR-V type; addresses are
/// 64-bit integers; b1 is OpTypeBool.
class Arithmetic {
 public:
  Arithmetic(SpirvWriter& writer, const ir::Modes& modes) : w(writer), modes_(modes) {}

  /// Mesa's software driver folds by rules that do not hold for 0, infinity and NaN (0 / x is 0,
  /// x + 0 is x), and finds the sign of a widened 32-bit integer wrongly. Given a 64-bit zero of
  /// which it does not know that it is one, float constants and such integers are hidden from it.
  void distrust(Id zero) { zero_ = zero; }
  /// Comparisons and conversions of f32 take subnormal numbers for zeros on the device, as does
  /// -|x| where the driver sees one: they are made of integers then, and of a 32-bit zero of which
  /// the driver does not know that it is one.
  void mend_subnormals(Id unknown_zero) {
    flushes_ = true;
    unknown_zero_ = unknown_zero;
  }
  /// `v`, of an integer type; where the driver is distrusted, as a sum of which it knows nothing.
  Id hidden(ir::Type t, Id v);

  Id type(ir::Type t);
  Id constant(ir::Type t, ir::Bits bits);
  /// The result of a row; 0 where `inst` is none of this file's.
  Id row(const ir::Inst& inst, std::span<const Id> args);
  /// The arithmetic of an atomic: an integer or a float of 32 or 64 bits.
  Id combine(ir::AtomicOp op, ir::Type t, Id x, Id y);
  /// Signed or unsigned, as the type says.
  Id less(ir::Type t, Id x, Id y);
  Id convert(ir::Type from, ir::Type to, Id x);

 private:
  Id add_sub_mul(const ir::Inst& inst, ir::Type t, Id x, Id y);
  Id whole(ir::Op op, ir::Type t, Id x);
  bool flushes(ir::Type t) const { return flushes_ && t == ir::Type::f32; }
  struct Ordered {
    Id order, is_number;
  };
  Ordered ordered(Id x);
  Id compare_bits(spv::Op code, Id x, Id y);
  Id less_equal(ir::Type t, Id x, Id y);
  Id equal(ir::Type t, Id x, Id y);
  Id not_equal(ir::Type t, Id x, Id y);
  Id divide(ir::Op op, ir::Type t, Id x, Id y);
  Id extreme(ir::Op op, ir::Type t, Id x, Id y);
  Id negate(ir::Type t, Id x);
  Id absolute(ir::Type t, Id x);
  Id copysign(ir::Type t, Id x, Id y);
  Id logic(ir::Op op, ir::Type t, Id x, Id y);
  Id popcount(ir::Type t, Id x);
  Id leading_zeros(ir::Type t, Id x);
  Id trailing_zeros(ir::Type t, Id x);
  Id shift(ir::Op op, ir::Type t, Id x, Id count);
  Id float_to_float(ir::Type from, ir::Type to, Id x);
  Id float_to_int(ir::Type from, ir::Type to, Id x);

  Id select(ir::Type t, Id c, Id x, Id y) { return w.op(spv::Op::OpSelect, type(t), {c, x, y}); }
  Id test(spv::Op op, Id x, Id y) { return w.op(op, w.bool_type(), {x, y}); }
  Id test(spv::Op op, Id x) { return w.op(op, w.bool_type(), {x}); }
  Id math(GLSLstd450 f, ir::Type t, std::initializer_list<Id> args) {
    return exact(w.glsl(f, type(t), args));
  }
  /// Keeps a float operation as it is written.
  Id exact(Id v) {
    w.decorate(v, spv::Decoration::NoContraction);
    return v;
  }

  SpirvWriter& w;
  ir::Modes modes_;
  Id zero_ = 0;           ///< see distrust
  bool flushes_ = false;  ///< see mend_subnormals
  Id unknown_zero_ = 0;   ///< of mend_subnormals
};

}  // namespace quern::vulkan
