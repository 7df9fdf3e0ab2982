#include "backends/llvm/scalar.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "quern/error.h"

namespace quern::codegen {

using ir::Op;
using llvm::APInt;
using llvm::ConstantFP;
using llvm::ConstantInt;
using llvm::Value;

llvm::Type* type_of(llvm::LLVMContext& context, ir::Type type, unsigned global_space) {
  if (type == ir::Type::f16) return llvm::Type::getHalfTy(context);
  if (type == ir::Type::f32) return llvm::Type::getFloatTy(context);
  if (type == ir::Type::f64) return llvm::Type::getDoubleTy(context);
  if (type == ir::Type::address) return llvm::PointerType::get(context, global_space);
  if (ir::bit_width(type) == 0)
    throw InternalError("type " + std::string(ir::name(type)) + " reached the code generator");
  return llvm::IntegerType::get(context, ir::bit_width(type));
}

Value* constant_of(llvm::LLVMContext& context, ir::Type type, ir::Bits bits) {
  if (type == ir::Type::address) {
    auto* pointer = llvm::PointerType::get(context, 0);
    return llvm::ConstantExpr::getIntToPtr(ConstantInt::get(llvm::Type::getInt64Ty(context), bits),
                                           pointer);
  }
  APInt value(ir::bit_width(type), ir::truncate(bits, type));
  if (type == ir::Type::f16)
    return ConstantFP::get(context, llvm::APFloat(llvm::APFloat::IEEEhalf(), value));
  if (type == ir::Type::f32)
    return ConstantFP::get(context, llvm::APFloat(llvm::APFloat::IEEEsingle(), value));
  if (type == ir::Type::f64)
    return ConstantFP::get(context, llvm::APFloat(llvm::APFloat::IEEEdouble(), value));
  return ConstantInt::get(context, value);
}

namespace {

class Scalar {
 public:
  Scalar(llvm::IRBuilderBase& builder, ir::Type operand, bool by_vectors_)
      : b(builder), type(operand), by_vectors(by_vectors_) {}

  Value* div(Value* x, Value* y) {
    if (ir::is_float(type)) return b.CreateFDiv(x, y);
    Divisor d = total(x, y);
    Value* q = divides_floats(d.value) ? integer(b.CreateFDiv(real(x), real(d.value)))
               : ir::is_signed(type)   ? b.CreateSDiv(x, d.value)
                                       : b.CreateUDiv(x, d.value);
    return d.zero ? b.CreateSelect(d.zero, ConstantInt::get(x->getType(), 0), q) : q;
  }

  Value* rem(Value* x, Value* y) {
    Divisor d = total(x, y);
    Value* r = divides_floats(d.value) ? integer_rem(x, d.value)
               : ir::is_signed(type)   ? b.CreateSRem(x, d.value)
                                       : b.CreateURem(x, d.value);
    return d.zero ? b.CreateSelect(d.zero, x, r) : r;
  }

  Value* less(Value* x, Value* y) {
    if (ir::is_float(type)) return b.CreateFCmpOLT(x, y);
    return ir::is_signed(type) ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
  }
  Value* less_equal(Value* x, Value* y) {
    if (ir::is_float(type)) return b.CreateFCmpOLE(x, y);
    return ir::is_signed(type) ? b.CreateICmpSLE(x, y) : b.CreateICmpULE(x, y);
  }

  /// Where a comparison chooses a constant, it is put the other way round: of `v < 0 ? 0 : v` with
  /// a `v` widened from f32 and a comparison that is used again, LLVM 19 makes `v <= 0 ? 0 : v`,
  /// which loses the sign of -0 (InstCombine, selects of casts).
  Value* choose(Value* condition, Value* x, Value* y) {
    auto* less = llvm::dyn_cast<llvm::FCmpInst>(condition);
    if (!less || !llvm::isa<llvm::Constant>(x)) return b.CreateSelect(condition, x, y);
    Value* inverse =
        b.CreateFCmp(less->getInversePredicate(), less->getOperand(0), less->getOperand(1));
    return b.CreateSelect(inverse, y, x);
  }

  /// The smaller (or greater) of two floats; a NaN is skipped, -0 is below +0.
  Value* extreme(bool smaller, Value* x, Value* y) {
    Value* first = smaller ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOGT(x, y);
    Value* result = b.CreateSelect(first, x, y);
    if (auto* either = llvm::dyn_cast<llvm::SelectInst>(result))
      either->setMetadata(of_any_zero, llvm::MDNode::get(b.getContext(), {}));  // the tie decides
    auto* bits = b.getIntNTy(ir::bit_width(type));
    Value* xb = b.CreateBitCast(x, bits);
    Value* yb = b.CreateBitCast(y, bits);
    Value* tie = b.CreateBitCast(smaller ? b.CreateOr(xb, yb) : b.CreateAnd(xb, yb), x->getType());
    result = b.CreateSelect(b.CreateFCmpOEQ(x, y), tie, result);
    return b.CreateSelect(b.CreateFCmpUNO(y, y), x, result);
  }

  Value* shift(Op op, Value* x, Value* count) {
    count = b.CreateAnd(count, ConstantInt::get(x->getType(), ir::bit_width(type) - 1));
    if (op == Op::shl) return b.CreateShl(x, count);
    return ir::is_signed(type) ? b.CreateAShr(x, count) : b.CreateLShr(x, count);
  }

  Value* convert(Value* x, ir::Type to) {
    using ir::Type;
    auto* target = type_of(b.getContext(), to, 0);
    if (to == type) return x;
    if (to == Type::b1) {
      return ir::is_float(type) ? b.CreateFCmpUNE(x, ConstantFP::get(x->getType(), 0))
                                : b.CreateICmpNE(x, ConstantInt::get(x->getType(), 0));
    }
    if (ir::is_float(to)) {
      if (ir::is_float(type)) return b.CreateFPCast(x, target);
      return ir::is_signed(type) ? b.CreateSIToFP(x, target) : b.CreateUIToFP(x, target);
    }
    if (ir::is_float(type)) return float_to_int(x, to);
    return b.CreateIntCast(x, target, ir::is_signed(type));
  }

 private:
  llvm::IRBuilderBase& b;
  ir::Type type;
  bool by_vectors;

  struct Divisor {
    Value* value;
    Value* zero;  ///< null: never
  };
  /// A divisor that cannot trap, 1 where it would: MIN / 1 is what MIN / -1 must give.
  Divisor total(Value* x, Value* y) {
    bool is_signed = ir::is_signed(type);
    if (auto* c = llvm::dyn_cast<ConstantInt>(y))
      if (!c->isZero() && !(is_signed && c->isMinusOne())) return {y, nullptr};
    Value* zero = b.CreateICmpEQ(y, ConstantInt::get(y->getType(), 0));
    Value* unsafe = zero;
    if (is_signed) {
      unsigned width = ir::bit_width(type);
      Value* lowest =
          b.CreateICmpEQ(x, ConstantInt::get(b.getContext(), APInt::getSignedMinValue(width)));
      Value* minus_one = b.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(y->getType()));
      unsafe = b.CreateOr(zero, b.CreateAnd(lowest, minus_one));
    }
    return {b.CreateSelect(unsafe, ConstantInt::get(y->getType(), 1), y), zero};
  }

  // ---- integers of 32 bits divided as f64, which vectors have a division of
  //
  // Exact: where x / y is no integer, it is at least 1/|y| away from one, more than 2^-53 of it, as
  // |x| < 2^32; so rounding does not reach the integer, and the truncated quotient is the right one.

  bool divides_floats(const Value* divisor) const {
    return by_vectors && ir::bit_width(type) == 32 && !llvm::isa<ConstantInt>(divisor);
  }
  Value* real(Value* v) {
    auto* f64 = b.getDoubleTy();
    return ir::is_signed(type) ? b.CreateSIToFP(v, f64) : b.CreateUIToFP(v, f64);
  }
  Value* integer(Value* v) {
    return ir::is_signed(type) ? b.CreateFPToSI(v, b.getInt32Ty())
                               : b.CreateFPToUI(v, b.getInt32Ty());
  }
  Value* integer_rem(Value* x, Value* divisor) {
    Value* q = integer(b.CreateFDiv(real(x), real(divisor)));
    return b.CreateSub(x, b.CreateMul(q, divisor));
  }

  /// NaN gives 0, what does not fit saturates. By selects: llvm.fpto[su]i.sat does not vectorise.
  Value* float_to_int(Value* x, ir::Type to) {
    unsigned width = ir::bit_width(to);
    bool is_signed = ir::is_signed(to);
    auto* target = b.getIntNTy(width);
    auto* wide = b.getIntNTy(width < 32 ? 32 : width);
    // The bounds of the integers are no halves: they would be infinite.
    if (x->getType()->isHalfTy()) x = b.CreateFPExt(x, b.getFloatTy());
    // Narrow targets go through i32, which holds all they need, and converts in one instruction.
    Value* raw = is_signed || width < 32 ? b.CreateFPToSI(x, wide) : b.CreateFPToUI(x, wide);
    Value* fits = b.CreateTrunc(b.CreateFreeze(raw), target);
    auto real = [&](double v) { return ConstantFP::get(x->getType(), v); };
    auto whole = [&](const APInt& v) { return ConstantInt::get(b.getContext(), v); };
    Value* zero = ConstantInt::get(target, 0);
    if (!is_signed) {
      Value* over = b.CreateFCmpOGE(x, real(std::ldexp(1.0, int(width))));
      Value* result = b.CreateSelect(over, whole(APInt::getMaxValue(width)), fits);
      return b.CreateSelect(b.CreateFCmpOGT(x, real(0)), result, zero);
    }
    double bound = std::ldexp(1.0, int(width) - 1);
    Value* over = b.CreateFCmpOGE(x, real(bound));
    Value* under = b.CreateFCmpOLT(x, real(-bound));
    Value* result = b.CreateSelect(over, whole(APInt::getSignedMaxValue(width)), fits);
    result = b.CreateSelect(under, whole(APInt::getSignedMinValue(width)), result);
    return b.CreateSelect(b.CreateFCmpUNO(x, x), zero, result);
  }
};

Value* intrinsic(llvm::IRBuilderBase& b, llvm::Intrinsic::ID id, Value* x) {
  return b.CreateUnaryIntrinsic(id, x);
}

/// What may be done to a sum or product beyond its plain meaning.
llvm::FastMathFlags relaxations(const ir::Inst& inst, const ir::Modes& modes) {
  llvm::FastMathFlags flags;
  bool contract = modes.contract && !modes.strict && !(inst.kind & ir::uncontracted);
  bool regroup = (inst.kind & ~ir::unasked) == ir::reassociate && !modes.strict;
  flags.setAllowContract(contract);
  flags.setAllowReassoc(regroup);
  return flags;
}

Value* arithmetic(llvm::IRBuilderBase& b, Op op, bool is_float, Value* x, Value* y) {
  if (op == Op::add) return is_float ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
  if (op == Op::sub) return is_float ? b.CreateFSub(x, y) : b.CreateSub(x, y);
  return is_float ? b.CreateFMul(x, y) : b.CreateMul(x, y);
}

}  // namespace

Value* emit_combine(llvm::IRBuilderBase& b, ir::AtomicOp op, ir::Type type, Value* old,
                    Value* value) {
  Scalar s(b, type, false);
  switch (op) {
    case ir::AtomicOp::add: return arithmetic(b, Op::add, ir::is_float(type), old, value);
    case ir::AtomicOp::mul: return arithmetic(b, Op::mul, ir::is_float(type), old, value);
    case ir::AtomicOp::min:
      if (ir::is_float(type)) return s.extreme(true, old, value);
      return b.CreateSelect(s.less(value, old), value, old);
    case ir::AtomicOp::max:
      if (ir::is_float(type)) return s.extreme(false, old, value);
      return b.CreateSelect(s.less(old, value), value, old);
    case ir::AtomicOp::bit_and: return b.CreateAnd(old, value);
    case ir::AtomicOp::bit_or: return b.CreateOr(old, value);
    case ir::AtomicOp::bit_xor: return b.CreateXor(old, value);
    default: throw InternalError("no combination for atomic " + std::string(ir::name(op)));
  }
}

namespace {
/// The bits of a float <-> an integer of its order: its own inverse.
Value* swap_order(llvm::IRBuilderBase& b, Value* bits) {
  unsigned width = bits->getType()->getIntegerBitWidth();
  Value* sign = b.CreateAShr(bits, width - 1);
  return b.CreateXor(bits, b.CreateLShr(sign, 1));
}
}  // namespace

Value* emit_key(llvm::IRBuilderBase& b, Value* v, bool skip_high) {
  unsigned width = unsigned(v->getType()->getPrimitiveSizeInBits());
  Value* key = swap_order(b, b.CreateBitCast(v, b.getIntNTy(width)));
  APInt last = skip_high ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width);
  return b.CreateSelect(b.CreateFCmpUNO(v, v), ConstantInt::get(b.getContext(), last), key);
}

Value* emit_unkey(llvm::IRBuilderBase& b, Value* key, llvm::Type* type) {
  return b.CreateBitCast(swap_order(b, key), type);
}

Value* emit_scalar(llvm::IRBuilderBase& b, const ir::Inst& inst, std::span<Value* const> args,
                   const ir::Modes& modes, bool by_vectors) {
  using llvm::Intrinsic::ID;
  if (inst.op == Op::constant) return constant_of(b.getContext(), inst.type(), inst.imm);
  if (args.empty() || inst.results.size() != 1) return nullptr;
  ir::Type type = inst.operand(inst.operand_count() - 1)->type;
  bool is_float = ir::is_float(type);
  Scalar s(b, type, by_vectors);
  Value* x = args[0];
  Value* y = args.size() > 1 ? args[1] : nullptr;
  Value* z = args.size() > 2 ? args[2] : nullptr;
  switch (inst.op) {
    case Op::add:
    case Op::sub:
    case Op::mul: {
      llvm::IRBuilderBase::FastMathFlagGuard keep(b);
      b.setFastMathFlags(is_float ? relaxations(inst, modes) : llvm::FastMathFlags());
      return arithmetic(b, inst.op, is_float, x, y);
    }
    case Op::div: return s.div(x, y);
    case Op::rem: return s.rem(x, y);
    case Op::neg: return is_float ? b.CreateFNeg(x) : b.CreateNeg(x);
    case Op::abs:
      if (is_float) return intrinsic(b, llvm::Intrinsic::fabs, x);
      if (ir::is_unsigned(type)) return x;
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse());
    case Op::min: return s.choose(s.less(y, x), y, x);
    case Op::max: return s.choose(s.less(x, y), y, x);
    case Op::fmin: return s.extreme(true, x, y);
    case Op::fmax: return s.extreme(false, x, y);
    case Op::fma: return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
    case Op::sqrt: return intrinsic(b, llvm::Intrinsic::sqrt, x);
    case Op::floor: return intrinsic(b, llvm::Intrinsic::floor, x);
    case Op::ceil: return intrinsic(b, llvm::Intrinsic::ceil, x);
    case Op::trunc: return intrinsic(b, llvm::Intrinsic::trunc, x);
    case Op::round: return intrinsic(b, llvm::Intrinsic::roundeven, x);
    case Op::copysign: return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, y);
    case Op::stop_gradient: return x;
    case Op::bit_and: return b.CreateAnd(x, y);
    case Op::bit_or: return b.CreateOr(x, y);
    case Op::bit_xor: return b.CreateXor(x, y);
    case Op::bit_not: return b.CreateNot(x);
    case Op::popcount: return intrinsic(b, llvm::Intrinsic::ctpop, x);
    case Op::clz: return b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, b.getFalse());
    case Op::ctz: return b.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, x, b.getFalse());
    case Op::shl:
    case Op::shr: return s.shift(inst.op, x, y);
    case Op::eq: return is_float ? b.CreateFCmpOEQ(x, y) : b.CreateICmpEQ(x, y);
    case Op::ne: return is_float ? b.CreateFCmpUNE(x, y) : b.CreateICmpNE(x, y);
    case Op::lt: return s.less(x, y);
    case Op::le: return s.less_equal(x, y);
    case Op::gt: return s.less(y, x);
    case Op::ge: return s.less_equal(y, x);
    case Op::select: return s.choose(x, y, z);
    case Op::convert: return s.convert(x, inst.type());
    case Op::bitcast: return b.CreateBitCast(x, type_of(b.getContext(), inst.type(), 0));
    default: return nullptr;
  }
}

}  // namespace quern::codegen
