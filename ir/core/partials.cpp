#include "quern/ir/partials.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace quern::ir {

namespace {
/// What a rule sees: operands, result, the factor t, and short names for building. A rule builds t
/// times the derivative, and with Further::yes is as differentiable as that: what it selects by does
/// not cut off how the product varies with t or with an operand, so that rules may be applied to what
/// rules build.
struct Case {
  Builder& b;
  Op op;
  std::span<Value* const> operands;
  Value* result;
  size_t k;
  Value* t;
  Further further;

  Value* operator[](size_t n) const { return operands[n]; }
  Value* number(double v) const { return b.real(result->type, v); }
  Value* one() const { return number(1); }
  Value* neg(Value* v) const { return b.unary(Op::neg, v); }
  Value* sign(Value* v) const { return b.binary(Op::copysign, one(), v); }
  Value* square(Value* v) const { return b.mul(v, v); }
  Value* plus(double term, Value* v) const { return b.add(number(term), v); }
  Value* inverse(Value* v) const { return b.div(one(), v); }
  Value* scaled(double factor, Value* v) const { return b.mul(number(factor), v); }

  /// x · y, and 0 where x is 0 whatever y is. Where that matters the product is NaN, and only there
  /// the select of Further::yes chooses 0: elsewhere the derivative of the product in x stays y where
  /// x is 0.
  Value* times(Value* x, Value* y) const {
    Value* product = b.mul(x, y);
    return never_zero(x) ? product : zero_with(x, product);
  }
  /// x / y, and 0 where x is 0 whatever y is.
  Value* over(Value* x, Value* y) const {
    Value* quotient = b.div(x, y);
    return never_zero(x) || never_zero(y) ? quotient : zero_with(x, quotient);
  }
  Value* is_zero(Value* v) const { return b.binary(Op::eq, v, number(0)); }
  /// `v`, and 0 where it is NaN and `none` holds, as a factor of it is 0. Otherwise it is 0 there, which
  /// only its own derivative tells from a constant.
  Value* zero_where(Value* none, Value* v) const {
    if (further == Further::no) return b.select(none, number(0), v);
    Value* lost = b.binary(Op::ne, v, v);
    lost = b.binary(Op::bit_and, none, lost);
    return b.select(lost, number(0), v);
  }
  Value* zero_with(Value* x, Value* v) const { return zero_where(is_zero(x), v); }
  /// NaN where it is none.
  static double constant(const Value* v) {
    const Inst* c = v->inst;
    return c && c->is(Op::constant) ? real_of(c->imm, v->type) : std::nan("");
  }

 private:
  static bool never_zero(const Value* v) { return std::fabs(constant(v)) > 0; }
};

Value* chain_zero(const Case&) { return nullptr; }
Value* chain_add(const Case& s) { return s.t; }
Value* chain_sub(const Case& s) { return s.k == 0 ? s.t : s.neg(s.t); }
Value* chain_mul(const Case& s) { return s.b.mul(s.t, s[1 - s.k]); }
Value* chain_neg(const Case& s) { return s.neg(s.t); }

/// -(t / b) · a / b shares t / b with the dividend's, and stays in range where b² would not. Of a
/// constant a the result serves for both: t / b is t · (a / b) · (1 / a), where a is so near to 1
/// that only what has a subnormal b, or reciprocal, is lost. Where a is 0 so is the product, also if
/// t / b overflows.
Value* chain_div(const Case& s) {
  if (s.k == 0) return s.over(s.t, s[1]);
  const double a = s.constant(s[0]);
  const bool serves = std::fabs(a) > 0x1p-8 && std::fabs(a) < 0x1p8;
  Value* quotient =
      serves ? s.b.mul(s.t, a == 1 ? s.result : s.scaled(1 / a, s.result)) : s.b.div(s.t, s[1]);
  Value* none = s.is_zero(s.t);
  none = s.b.binary(Op::bit_or, none, s.is_zero(s.result));
  return s.zero_where(none, s.neg(s.b.mul(quotient, s.result)));
}

Value* chain_abs(const Case& s) { return s.b.mul(s.t, s.sign(s[0])); }

Value* first_or_second(const Case& s, Value* second) {
  Value* zero = s.number(0);
  return s.k == 0 ? s.b.select(second, zero, s.t) : s.b.select(second, s.t, zero);
}
Value* chain_min(const Case& s) {
  Value* second = s.b.lt(s[1], s[0]);
  if (s.op == Op::fmin) second = s.b.binary(Op::bit_or, second, s.b.binary(Op::ne, s[0], s[0]));
  return first_or_second(s, second);
}
Value* chain_max(const Case& s) {
  Value* second = s.b.lt(s[0], s[1]);
  if (s.op == Op::fmax) second = s.b.binary(Op::bit_or, second, s.b.binary(Op::ne, s[0], s[0]));
  return first_or_second(s, second);
}

Value* chain_fma(const Case& s) { return s.k == 2 ? s.t : chain_mul(s); }
Value* chain_sqrt(const Case& s) { return s.over(s.t, s.b.add(s.result, s.result)); }

Value* chain_copysign(const Case& s) {
  if (s.k == 1) return nullptr;
  Value* product = s.b.mul(s.t, s.sign(s[0]));
  return s.b.mul(product, s.sign(s[1]));
}

Value* chain_select(const Case& s) {
  if (s.k == 0) return nullptr;
  Value* zero = s.number(0);
  return s.k == 1 ? s.b.select(s[0], s.t, zero) : s.b.select(s[0], zero, s.t);
}

Value* chain_convert(const Case& s) { return is_float(s[0]->type) ? s.t : nullptr; }

Value* chain_slope(const Case& s) { return s.b.mul(s.t, library_slope(s.b, s.op, s[0])); }
Value* chain_tan(const Case& s) { return s.b.mul(s.t, s.plus(1, s.square(s.result))); }

/// 1 - x² without cancellation near 1.
Value* one_minus_square(const Case& s) {
  Value* below = s.b.sub(s.one(), s[0]);
  Value* above = s.plus(1, s[0]);
  return s.b.mul(below, above);
}
Value* chain_asin(const Case& s) { return s.over(s.t, s.b.unary(Op::sqrt, one_minus_square(s))); }
Value* chain_acos(const Case& s) { return s.neg(chain_asin(s)); }
Value* chain_atan(const Case& s) { return s.b.div(s.t, s.plus(1, s.square(s[0]))); }

Value* chain_sinh(const Case& s) { return s.times(s.t, s.b.unary(Op::cosh, s[0])); }
Value* chain_cosh(const Case& s) { return s.times(s.t, s.b.unary(Op::sinh, s[0])); }
/// -2 tanh x / cosh² x
Value* chain_sech2(const Case& s) {
  return s.b.mul(s.t, s.b.mul(s.scaled(-2, s.result), s.b.unary(Op::tanh, s[0])));
}
Value* chain_asinh(const Case& s) { return s.b.div(s.t, s.b.binary(Op::hypot, s.one(), s[0])); }
/// 1 / √(x² - 1), by factors: x² may overflow.
Value* chain_acosh(const Case& s) {
  Value* below = s.b.unary(Op::sqrt, s.b.sub(s[0], s.one()));
  Value* above = s.b.unary(Op::sqrt, s.b.add(s[0], s.one()));
  return s.over(s.t, s.b.mul(below, above));
}
Value* chain_atanh(const Case& s) { return s.over(s.t, one_minus_square(s)); }

Value* chain_exp(const Case& s) { return s.times(s.t, s.result); }
Value* chain_exp2(const Case& s) { return s.times(s.t, s.scaled(std::numbers::ln2, s.result)); }
Value* chain_expm1(const Case& s) { return s.times(s.t, s.b.unary(Op::exp, s[0])); }
Value* chain_log(const Case& s) { return s.over(s.t, s[0]); }
Value* chain_log2(const Case& s) { return s.scaled(std::numbers::log2e, chain_log(s)); }
Value* chain_log10(const Case& s) { return s.scaled(std::numbers::log10e, chain_log(s)); }
Value* chain_log1p(const Case& s) { return s.over(s.t, s.plus(1, s[0])); }

Value* chain_cbrt(const Case& s) { return s.over(s.t, s.scaled(3, s.square(s.result))); }
Value* chain_rsqrt(const Case& s) {
  Value* half = s.scaled(-0.5, s.t);
  return s.zero_with(s.t, s.b.div(s.b.mul(half, s.result), s[0]));
}
/// a / √(a² + b²), which is at most 1; 0 at the origin.
Value* chain_hypot(const Case& s) {
  Value* share = s.zero_with(s.result, s.b.div(s[s.k], s.result));
  return s.b.mul(s.t, share);
}

/// The digamma function ψ of x, in plain operations so that it has derivatives itself: reflected
/// below ½, moved to y + 10 by ψ(y) = ψ(y + 1) - 1/y, and there the asymptotic series
/// ln y - 1/2y - Σ B₂ₖ / 2k y²ᵏ, k ≤ 8 (Abramowitz & Stegun 6.3.5, 6.3.7 and 6.3.18).
Value* digamma(const Case& s, Value* x) {
  Builder& b = s.b;
  Value* reflects = b.lt(x, s.number(0.5));
  Value* y = b.select(reflects, b.sub(s.one(), x), x);
  constexpr int steps = 10;
  Value* moved = s.inverse(y);
  for (int k = 1; k < steps; k++) moved = b.add(moved, s.inverse(s.plus(k, y)));
  Value* far = s.plus(steps, y);
  Value* r = s.inverse(far);
  Value* z = s.square(r);
  // B₂ₖ / 2k for k = 8 … 1
  constexpr double terms[] = {-3617.0 / 8160, 1.0 / 12,  -691.0 / 32760, 1.0 / 132,
                              -1.0 / 240,     1.0 / 252, -1.0 / 120,     1.0 / 12};
  Value* series = s.number(0);
  for (double term : terms) series = b.mul(z, s.plus(term, series));
  Value* tail = b.add(s.scaled(0.5, r), series);
  Value* psi = b.sub(b.sub(b.unary(Op::log, far), tail), moved);
  // π / tan πx has period 1
  Value* fraction = b.sub(x, b.unary(Op::round, x));
  Value* turn = b.unary(Op::tan, s.scaled(std::numbers::pi, fraction));
  Value* pi = s.number(std::numbers::pi);
  Value* reflected = b.sub(psi, b.div(pi, turn));
  return b.select(reflects, reflected, psi);
}
Value* chain_tgamma(const Case& s) { return s.times(s.t, s.b.mul(s.result, digamma(s, s[0]))); }
Value* chain_lgamma(const Case& s) { return s.times(s.t, digamma(s, s[0])); }

/// fmod and remainder: a - n·b for an integer n that is constant around (a, b).
Value* chain_fmod(const Case& s) {
  if (s.k == 0) return s.t;
  Value* multiple = s.b.sub(s.result, s[0]);
  return s.times(s.t, s.b.unary(Op::round, s.b.div(multiple, s[1])));
}

/// atan2(y, x): x / (x² + y²) and -y / (x² + y²), scaled by the larger so that squares stay in
/// range.
Value* chain_atan2(const Case& s) {
  Builder& b = s.b;
  Value* height = b.unary(Op::abs, s[0]);
  Value* width = b.unary(Op::abs, s[1]);
  Value* m = b.binary(Op::max, height, width);
  Value* y = b.div(s[0], m);
  Value* x = b.div(s[1], m);
  Value* square = s.square(x);
  Value* denominator = b.mul(b.add(square, s.square(y)), m);
  return s.times(s.t, b.div(s.k == 0 ? x : s.neg(y), denominator));
}

/// x^y: y·x^(y - 1) and x^y·log x, each 0 where its first factor is. Not x^y / x, of which nothing
/// is left where x is 0 or x^y underflows.
Value* chain_pow(const Case& s) {
  Builder& b = s.b;
  if (s.k == 0) {
    Value* power = b.binary(Op::pow, s[0], b.sub(s[1], s.one()));
    return s.times(s.t, s.times(s[1], power));
  }
  return s.times(s.t, s.times(s.result, b.unary(Op::log, s[0])));
}

using Rule = Value* (*)(const Case&);
constexpr Rule rules[op_count] = {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) chain_##partial,
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) nullptr,
#include "quern/ir/ops.def"
};

/// Does the operation's rule round more than once?
bool is_composite(Op op) { return info(op).library || op == Op::div || op == Op::sqrt; }

/// In f32 and rounded once, as the operations on f16 are.
Value* chain_of_halves(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k,
                       Value* t, Further further) {
  std::vector<Value*> wide;
  for (Value* v : operands) wide.push_back(b.convert(v, Type::f32));
  Value* wide_result = b.convert(result, Type::f32);
  Value* wide_t = b.convert(t, Type::f32);
  return b.convert(chain(b, op, wide, wide_result, k, wide_t, further), Type::f16);
}
}  // namespace

bool has_library_slope(Op op, Type type) {
  return rules[size_t(op)] == chain_slope && type != Type::f16;
}

Value* library_slope(Builder& b, Op op, Value* x) {
  const auto number = [&](double v) { return b.real(x->type, v); };
  const auto exp = [&](Value* v) { return b.unary(Op::exp, v); };
  switch (op) {
    case Op::sin: return b.unary(Op::cos, x);
    case Op::cos: return b.unary(Op::neg, b.unary(Op::sin, x));
    case Op::tanh: return b.unary(Op::sech2, x);  // where 1 - tanh² would cancel
    case Op::erf:
    case Op::erfc: {
      const double factor = 2 * std::numbers::inv_sqrtpi;
      return b.mul(number(op == Op::erf ? factor : -factor), exp(b.unary(Op::neg, b.mul(x, x))));
    }
    default: return nullptr;
  }
}

Value* chain(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k, Value* t,
             Further further) {
  if (!is_float(result->type)) return nullptr;
  if (result->type == Type::f16 && is_composite(op))
    return chain_of_halves(b, op, operands, result, k, t, further);
  return rules[size_t(op)](Case{b, op, operands, result, k, t, further});
}

Value* zero_with(Builder& b, Value* t, Value* built, Further further) {
  return Case{b, Op::mul, {}, built, 0, t, further}.zero_with(t, built);
}

Value* partial(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k) {
  return is_float(result->type) ? chain(b, op, operands, result, k, b.real(result->type, 1))
                                : nullptr;
}

bool is_flat(Op op) { return rules[size_t(op)] == chain_zero; }

}  // namespace quern::ir
