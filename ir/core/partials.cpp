#include "quern/ir/partials.h"

#include <numbers>

namespace quern::ir {

namespace {
/// What a rule sees: operands, result, and short names for building.
struct Case {
  Builder& b;
  Op op;
  std::span<Value* const> operands;
  Value* result;
  size_t k;

  Value* operator[](size_t n) const { return operands[n]; }
  Value* number(double v) const { return b.real(result->type, v); }
  Value* one() const { return number(1); }
};

Value* partial_zero(const Case&) { return nullptr; }
Value* partial_add(const Case& s) { return s.one(); }
Value* partial_sub(const Case& s) { return s.number(s.k == 0 ? 1 : -1); }
Value* partial_mul(const Case& s) { return s[1 - s.k]; }
Value* partial_neg(const Case& s) { return s.number(-1); }

Value* partial_div(const Case& s) {
  if (s.k == 0) return s.b.div(s.one(), s[1]);
  return s.b.unary(Op::neg, s.b.div(s.result, s[1]));
}

Value* partial_abs(const Case& s) { return s.b.binary(Op::copysign, s.one(), s[0]); }

Value* first_or_second(const Case& s, Value* second) {
  Value* zero = s.number(0);
  return s.k == 0 ? s.b.select(second, zero, s.one()) : s.b.select(second, s.one(), zero);
}
Value* partial_min(const Case& s) {
  Value* second = s.b.lt(s[1], s[0]);
  if (s.op == Op::fmin) second = s.b.binary(Op::bit_or, second, s.b.binary(Op::ne, s[0], s[0]));
  return first_or_second(s, second);
}
Value* partial_max(const Case& s) {
  Value* second = s.b.lt(s[0], s[1]);
  if (s.op == Op::fmax) second = s.b.binary(Op::bit_or, second, s.b.binary(Op::ne, s[0], s[0]));
  return first_or_second(s, second);
}

Value* partial_fma(const Case& s) { return s.k == 2 ? s.one() : s[1 - s.k]; }
Value* partial_sqrt(const Case& s) { return s.b.div(s.number(0.5), s.result); }

Value* partial_copysign(const Case& s) {
  if (s.k == 1) return nullptr;
  return s.b.mul(s.b.binary(Op::copysign, s.one(), s[0]), s.b.binary(Op::copysign, s.one(), s[1]));
}

Value* partial_select(const Case& s) {
  if (s.k == 0) return nullptr;
  Value* zero = s.number(0);
  return s.k == 1 ? s.b.select(s[0], s.one(), zero) : s.b.select(s[0], zero, s.one());
}

Value* partial_convert(const Case& s) { return is_float(s[0]->type) ? s.one() : nullptr; }

Value* partial_sin(const Case& s) { return s.b.unary(Op::cos, s[0]); }
Value* partial_cos(const Case& s) { return s.b.unary(Op::neg, s.b.unary(Op::sin, s[0])); }
Value* partial_tan(const Case& s) { return s.b.add(s.one(), s.b.mul(s.result, s.result)); }

/// 1 - x² without cancellation near 1.
Value* one_minus_square(const Case& s) {
  return s.b.mul(s.b.sub(s.one(), s[0]), s.b.add(s.one(), s[0]));
}
Value* partial_asin(const Case& s) {
  return s.b.div(s.one(), s.b.unary(Op::sqrt, one_minus_square(s)));
}
Value* partial_acos(const Case& s) { return s.b.unary(Op::neg, partial_asin(s)); }
Value* partial_atan(const Case& s) {
  return s.b.div(s.one(), s.b.add(s.one(), s.b.mul(s[0], s[0])));
}

Value* partial_sinh(const Case& s) { return s.b.unary(Op::cosh, s[0]); }
Value* partial_cosh(const Case& s) { return s.b.unary(Op::sinh, s[0]); }
/// 1 / cosh², where 1 - tanh² would cancel.
Value* partial_tanh(const Case& s) {
  Value* cosine = s.b.unary(Op::cosh, s[0]);
  return s.b.div(s.b.div(s.one(), cosine), cosine);
}
Value* partial_asinh(const Case& s) {
  return s.b.div(s.one(), s.b.binary(Op::hypot, s.one(), s[0]));
}
/// 1 / √(x² - 1), by factors: x² may overflow.
Value* partial_acosh(const Case& s) {
  Value* below = s.b.unary(Op::sqrt, s.b.sub(s[0], s.one()));
  Value* above = s.b.unary(Op::sqrt, s.b.add(s[0], s.one()));
  return s.b.div(s.one(), s.b.mul(below, above));
}
Value* partial_atanh(const Case& s) { return s.b.div(s.one(), one_minus_square(s)); }

Value* partial_exp(const Case& s) { return s.result; }
Value* partial_exp2(const Case& s) { return s.b.mul(s.number(std::numbers::ln2), s.result); }
Value* partial_expm1(const Case& s) { return s.b.unary(Op::exp, s[0]); }
Value* partial_log(const Case& s) { return s.b.div(s.one(), s[0]); }
Value* partial_log2(const Case& s) { return s.b.div(s.number(std::numbers::log2e), s[0]); }
Value* partial_log10(const Case& s) { return s.b.div(s.number(std::numbers::log10e), s[0]); }
Value* partial_log1p(const Case& s) { return s.b.div(s.one(), s.b.add(s.one(), s[0])); }

Value* partial_cbrt(const Case& s) {
  return s.b.div(s.number(1.0 / 3), s.b.mul(s.result, s.result));
}
Value* partial_rsqrt(const Case& s) { return s.b.div(s.b.mul(s.number(-0.5), s.result), s[0]); }
Value* partial_hypot(const Case& s) {
  Value* zero = s.number(0);
  return s.b.select(s.b.binary(Op::eq, s.result, zero), zero, s.b.div(s[s.k], s.result));
}

/// 2/√π · e^(-x²)
Value* partial_erf(const Case& s) {
  Value* power = s.b.unary(Op::exp, s.b.unary(Op::neg, s.b.mul(s[0], s[0])));
  return s.b.mul(s.number(2 * std::numbers::inv_sqrtpi), power);
}
Value* partial_erfc(const Case& s) { return s.b.unary(Op::neg, partial_erf(s)); }

/// The digamma function ψ of x, in plain operations so that it has derivatives itself: reflected
/// below ½, moved to y + 10 by ψ(y) = ψ(y + 1) - 1/y, and there the asymptotic series
/// ln y - 1/2y - Σ B₂ₖ / 2k y²ᵏ, k ≤ 8 (Abramowitz & Stegun 6.3.5, 6.3.7 and 6.3.18).
Value* digamma(const Case& s, Value* x) {
  Builder& b = s.b;
  Value* reflects = b.lt(x, s.number(0.5));
  Value* y = b.select(reflects, b.sub(s.one(), x), x);
  constexpr int steps = 10;
  Value* moved = s.number(0);
  for (int k = 0; k < steps; k++) moved = b.add(moved, b.div(s.one(), b.add(y, s.number(k))));
  Value* r = b.div(s.one(), b.add(y, s.number(steps)));
  Value* z = b.mul(r, r);
  // B₂ₖ / 2k for k = 8 … 1
  constexpr double terms[] = {-3617.0 / 8160, 1.0 / 12,  -691.0 / 32760, 1.0 / 132,
                              -1.0 / 240,     1.0 / 252, -1.0 / 120,     1.0 / 12};
  Value* series = s.number(0);
  for (double term : terms) series = b.mul(z, b.add(s.number(term), series));
  Value* tail = b.add(b.mul(s.number(0.5), r), series);
  Value* psi = b.sub(b.sub(b.unary(Op::log, b.add(y, s.number(steps))), tail), moved);
  // π / tan πx has period 1
  Value* fraction = b.sub(x, b.unary(Op::round, x));
  Value* turn = b.unary(Op::tan, b.mul(s.number(std::numbers::pi), fraction));
  Value* reflected = b.sub(psi, b.div(s.number(std::numbers::pi), turn));
  return b.select(reflects, reflected, psi);
}
Value* partial_tgamma(const Case& s) { return s.b.mul(s.result, digamma(s, s[0])); }
Value* partial_lgamma(const Case& s) { return digamma(s, s[0]); }

/// fmod and remainder: a - n·b for an integer n that is constant around (a, b).
Value* partial_fmod(const Case& s) {
  if (s.k == 0) return s.one();
  return s.b.unary(Op::round, s.b.div(s.b.sub(s.result, s[0]), s[1]));
}

/// atan2(y, x): x / (x² + y²) and -y / (x² + y²), scaled by the larger so that squares stay in
/// range.
Value* partial_atan2(const Case& s) {
  Builder& b = s.b;
  Value* m = b.binary(Op::max, b.unary(Op::abs, s[0]), b.unary(Op::abs, s[1]));
  Value* y = b.div(s[0], m);
  Value* x = b.div(s[1], m);
  Value* square = b.mul(b.add(b.mul(x, x), b.mul(y, y)), m);
  return b.div(s.k == 0 ? x : b.unary(Op::neg, y), square);
}

/// x^y: y·x^(y - 1) and x^y·log x.
Value* partial_pow(const Case& s) {
  Builder& b = s.b;
  Value* zero = s.number(0);
  if (s.k == 0) {
    Value* power = b.binary(Op::pow, s[0], b.sub(s[1], s.one()));
    return b.select(b.binary(Op::eq, s[1], zero), zero, b.mul(s[1], power));
  }
  Value* product = b.mul(s.result, b.unary(Op::log, s[0]));
  return b.select(b.binary(Op::eq, s.result, zero), zero, product);
}

using Rule = Value* (*)(const Case&);
constexpr Rule rules[op_count] = {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) partial_##partial,
#define QUERN_FORM(name, form, kind, names, regions, levels, flags) nullptr,
#include "quern/ir/ops.def"
};
}  // namespace

Value* partial(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k) {
  if (!is_float(result->type)) return nullptr;
  return rules[size_t(op)](Case{b, op, operands, result, k});
}

Value* chain(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k,
             Value* t) {
  Value* slope = partial(b, op, operands, result, k);
  return slope ? b.mul(t, slope) : nullptr;
}

bool is_flat(Op op) { return rules[size_t(op)] == partial_zero; }

}  // namespace quern::ir
