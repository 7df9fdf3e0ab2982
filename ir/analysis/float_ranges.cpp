#include "ir/analysis/float_ranges.h"

#include <algorithm>

#include "ir/analysis/facts.h"

namespace quern::ir {

namespace {

/// The largest finite number.
double largest(Type t) {
  if (t == Type::f16) return 65504;
  return t == Type::f32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
}

/// Bounds of a result as they are however it is rounded.
FloatInterval rounded(double least, double most, bool may_be_nan, Type t) {
  constexpr double slack = 0x1p-8, tiny = 0x1p-14;  // what may be flushed to zero
  if (std::isnan(least) || std::isnan(most)) return {};
  const double big = largest(t) * (1 - slack);
  if (std::isfinite(least)) least -= std::abs(least) * slack;
  if (std::isfinite(most)) most += std::abs(most) * slack;
  if (least > 0 && least < tiny) least = 0;
  if (most < 0 && most > -tiny) most = 0;
  if (least < -big) least = -HUGE_VAL;
  if (most > big) most = HUGE_VAL;
  return {std::min(least, big), std::max(most, -big), may_be_nan};
}

bool is_finite(const FloatInterval& v) {
  return !v.may_be_nan && std::isfinite(v.least) && std::isfinite(v.most);
}

FloatInterval united(const FloatInterval& a, const FloatInterval& b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most), a.may_be_nan || b.may_be_nan};
}

FloatInterval product(const FloatInterval& a, const FloatInterval& b, bool square) {
  const double ends[] = {a.least * b.least, a.least * b.most, a.most * b.least, a.most * b.most};
  const double least = *std::ranges::min_element(ends), most = *std::ranges::max_element(ends);
  return {square ? 0.0 : least, most, false};
}

}  // namespace

FloatInterval FloatRanges::of(const Value* v, int depth) {
  if (auto known = known_.find(v); known != known_.end()) return known->second;
  if (!is_float(v->type) || !v->inst || depth > deepest) return {};
  const FloatInterval found = computed(v->inst, depth);
  known_[v] = found;
  return found;
}

FloatInterval FloatRanges::computed(const Inst* inst, int depth) {
  const Type t = inst->type();
  auto operand = [&](size_t k) { return of(inst->operand(k), depth + 1); };
  switch (inst->op) {
    case Op::constant: {
      const double v = t == Type::f16   ? double(f16_of(inst->imm))
                       : t == Type::f32 ? double(f32_of(inst->imm))
                                        : f64_of(inst->imm);
      if (std::isnan(v)) return {};
      return {v, v, false};
    }
    case Op::convert: {
      const Type from = inst->operand(0)->type;
      if (is_float(from)) {
        const FloatInterval a = operand(0);
        return preserves(from, t) ? a : rounded(a.least, a.most, a.may_be_nan, t);
      }
      if (from == Type::b1) return {0, 1, false};
      const Interval a = integers_.of(inst->operand(0));
      if (preserves(from, t)) return {double(a.least), double(a.most), false};
      // The ends stand for numbers beyond them: up to 2^64.
      return rounded(double(a.least), a.most == INT64_MAX ? 0x1p64 : double(a.most), false, t);
    }
    case Op::add:
    case Op::sub: {
      const FloatInterval a = operand(0), b = operand(1);
      if (!is_finite(a) || !is_finite(b)) return {};
      if (inst->is(Op::add)) return rounded(a.least + b.least, a.most + b.most, false, t);
      return rounded(a.least - b.most, a.most - b.least, false, t);
    }
    case Op::mul:
    case Op::fma: {
      const FloatInterval a = operand(0), b = operand(1);
      if (!is_finite(a) || !is_finite(b)) return {};
      const FloatInterval p = product(a, b, inst->operand(0) == inst->operand(1));
      if (inst->is(Op::mul)) return rounded(p.least, p.most, false, t);
      const FloatInterval c = operand(2);
      if (!is_finite(c)) return {};
      return rounded(p.least + c.least, p.most + c.most, false, t);
    }
    case Op::sqrt: {
      const FloatInterval a = operand(0);
      if (a.may_be_nan || a.least < 0) return {};
      return rounded(std::sqrt(a.least), std::sqrt(a.most), false, t);
    }
    case Op::neg: {
      const FloatInterval a = operand(0);
      return {-a.most, -a.least, a.may_be_nan};
    }
    case Op::abs: {
      const FloatInterval a = operand(0);
      const double most = std::max(std::abs(a.least), std::abs(a.most));
      return {a.least > 0 ? a.least : a.most < 0 ? -a.most : 0, most, a.may_be_nan};
    }
    case Op::floor: {
      const FloatInterval a = operand(0);
      return {std::floor(a.least), std::floor(a.most), a.may_be_nan};
    }
    case Op::ceil: {
      const FloatInterval a = operand(0);
      return {std::ceil(a.least), std::ceil(a.most), a.may_be_nan};
    }
    case Op::trunc: {
      const FloatInterval a = operand(0);
      return {std::trunc(a.least), std::trunc(a.most), a.may_be_nan};
    }
    case Op::round: {
      const FloatInterval a = operand(0);
      return {std::floor(a.least), std::ceil(a.most), a.may_be_nan};
    }
    case Op::min:    // b < a ? b : a: a NaN where a is one
    case Op::max: {  // a < b ? b : a
      const FloatInterval a = operand(0), b = operand(1);
      FloatInterval out = {std::min(a.least, b.least), std::min(a.most, b.most), a.may_be_nan};
      if (inst->is(Op::max)) {
        out.least = b.may_be_nan ? a.least : std::max(a.least, b.least);
        out.most = std::max(a.most, b.most);
      } else if (b.may_be_nan) {
        out.most = a.most;
      }
      return out;
    }
    case Op::fmin:
    case Op::fmax: {  // the other where one is a NaN
      const FloatInterval a = operand(0), b = operand(1);
      FloatInterval out = united(a, b);
      out.may_be_nan = a.may_be_nan && b.may_be_nan;
      if (inst->is(Op::fmin) && !a.may_be_nan) out.most = std::min(out.most, a.most);
      if (inst->is(Op::fmin) && !b.may_be_nan) out.most = std::min(out.most, b.most);
      if (inst->is(Op::fmax) && !a.may_be_nan) out.least = std::max(out.least, a.least);
      if (inst->is(Op::fmax) && !b.may_be_nan) out.least = std::max(out.least, b.least);
      return out;
    }
    case Op::select: return united(operand(1), operand(2));
    default: return {};
  }
}

bool FloatRanges::fits(const Value* v, Type integer) {
  const FloatInterval range = of(v);
  const int digits = int(bit_width(integer)) - (is_signed(integer) ? 1 : 0);
  const double least = is_signed(integer) ? -std::ldexp(1.0, digits) : 0.0;
  return !range.may_be_nan && std::trunc(range.least) >= least &&
         std::trunc(range.most) < std::ldexp(1.0, digits);
}

}  // namespace quern::ir
