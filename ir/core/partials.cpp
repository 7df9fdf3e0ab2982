#include "quern/ir/partials.h"

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
Value* partial_exp(const Case& s) { return s.result; }
Value* partial_log(const Case& s) { return s.b.div(s.one(), s[0]); }

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
#define QUERN_OP(name, rule, classes, flags, fold, partial, weight) partial_##partial,
#include "quern/ir/ops.def"
#undef QUERN_OP
};
}  // namespace

Value* partial(Builder& b, Op op, std::span<Value* const> operands, Value* result, size_t k) {
  if (!is_float(result->type)) return nullptr;
  return rules[size_t(op)](Case{b, op, operands, result, k});
}

}  // namespace quern::ir
