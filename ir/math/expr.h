#pragma once
// Writing functions in IR so that they read like the mathematics: an Expr is one value under
// construction with the usual operators. Numbers take the type of the operand they meet.
#include <concepts>
#include <initializer_list>
#include <vector>

#include "quern/ir/builder.h"

namespace quern::ir::math {

/// The function being written.
struct Writer {
  Builder builder;
  uint8_t kind = 0;  ///< given to float operations: 0 or `uncontracted`
};

struct Expr {
  Writer* w = nullptr;
  Value* v = nullptr;
  Type type() const { return v->type; }
};

template <class N>
concept Number = std::is_arithmetic_v<N>;

template <Number N>
Expr constant(Expr like, Type type, N n) {
  Bits bits = 0;
  if constexpr (std::floating_point<N>)
    bits = bits_of_real(double(n), type);
  else
    bits = bits_of_int(int64_t(n), type);
  return {like.w, like.w->builder.constant(type, bits)};
}

inline Expr unary(Op op, Expr a) { return {a.w, a.w->builder.unary(op, a.v)}; }
inline Expr binary(Op op, Expr a, Expr b) {
  Value* v = a.w->builder.binary(op, a.v, b.v);
  if (is_float(v->type) && (op == Op::add || op == Op::sub || op == Op::mul))
    v->inst->kind = a.w->kind;
  return {a.w, v};
}

#define QUERN_MATH_OPERATOR(symbol, op)                                        \
  inline Expr operator symbol(Expr a, Expr b) { return binary(Op::op, a, b); } \
  template <Number N>                                                          \
  Expr operator symbol(Expr a, N b) {                                          \
    return binary(Op::op, a, constant(a, a.type(), b));                        \
  }                                                                            \
  template <Number N>                                                          \
  Expr operator symbol(N a, Expr b) {                                          \
    return binary(Op::op, constant(b, b.type(), a), b);                        \
  }
QUERN_MATH_OPERATOR(+, add)
QUERN_MATH_OPERATOR(-, sub)
QUERN_MATH_OPERATOR(*, mul)
QUERN_MATH_OPERATOR(/, div)
QUERN_MATH_OPERATOR(&, bit_and)
QUERN_MATH_OPERATOR(|, bit_or)
QUERN_MATH_OPERATOR(^, bit_xor)
QUERN_MATH_OPERATOR(<<, shl)
QUERN_MATH_OPERATOR(>>, shr)
QUERN_MATH_OPERATOR(==, eq)
QUERN_MATH_OPERATOR(!=, ne)
QUERN_MATH_OPERATOR(<, lt)
QUERN_MATH_OPERATOR(<=, le)
QUERN_MATH_OPERATOR(>, gt)
QUERN_MATH_OPERATOR(>=, ge)
#undef QUERN_MATH_OPERATOR

inline Expr operator-(Expr a) { return unary(Op::neg, a); }
inline Expr operator!(Expr a) { return unary(Op::bit_not, a); }
inline Expr abs(Expr a) { return unary(Op::abs, a); }
inline Expr floor(Expr a) { return unary(Op::floor, a); }
inline Expr sqrt(Expr a) { return unary(Op::sqrt, a); }
inline Expr fma(Expr a, Expr b, Expr c) { return {a.w, a.w->builder.fma(a.v, b.v, c.v)}; }
/// b < a ? b : a and a < b ? b : a: a NaN in the first operand passes.
template <Number N>
Expr min(Expr a, N b) {
  return binary(Op::min, a, constant(a, a.type(), b));
}
template <Number N>
Expr max(Expr a, N b) {
  return binary(Op::max, a, constant(a, a.type(), b));
}

inline Expr select(Expr c, Expr a, Expr b) { return {c.w, c.w->builder.select(c.v, a.v, b.v)}; }
template <Number N>
Expr select(Expr c, N a, Expr b) {
  return select(c, constant(b, b.type(), a), b);
}
template <Number N>
Expr select(Expr c, Expr a, N b) {
  return select(c, a, constant(a, a.type(), b));
}

inline Expr bitcast(Expr a, Type to) { return {a.w, a.w->builder.bitcast(a.v, to)}; }
inline Expr convert(Expr a, Type to) { return {a.w, a.w->builder.convert(a.v, to)}; }
/// The bits of a float as the unsigned integer of its width, and back.
inline Expr bits(Expr a) { return bitcast(a, a.type() == Type::f32 ? Type::u32 : Type::u64); }
inline Expr float_of(Expr a) {
  return bitcast(a, bit_width(a.type()) == 32 ? Type::f32 : Type::f64);
}

/// While one lives, float operations are not contracted: for error-free transformations.
class Uncontracted {
 public:
  explicit Uncontracted(Expr e) : w_(e.w), before_(e.w->kind) { w_->kind = uncontracted; }
  ~Uncontracted() { w_->kind = before_; }
  Uncontracted(const Uncontracted&) = delete;

 private:
  Writer* w_;
  uint8_t before_;
};

/// Σ c[k]·x^k over c[first], c[first + 1], …, even and odd powers apart (half the latency), long
/// ones in four parts.
template <size_t N>
Expr polynomial(Expr x, const double (&c)[N], size_t first = 0) {
  auto horner = [&](Expr y, size_t from, size_t step) {
    size_t k = from + (N - 1 - from) / step * step;
    Expr sum = constant(x, x.type(), c[k]);
    while (k > from) {
      k -= step;
      sum = sum * y + c[k];
    }
    return sum;
  };
  if (N - first < 4) return horner(x, first, 1);
  Expr y = x * x;
  if (N < 18 || N - first < 18) return horner(y, first, 2) + x * horner(y, first + 1, 2);
  Expr z = y * y;
  Expr low = horner(z, first, 4) + x * horner(z, first + 1, 4);
  return low + y * (horner(z, first + 2, 4) + x * horner(z, first + 3, 4));
}

/// `if c { then() } { otherwise() }`; both give as many values of the same types.
template <class F, class G>
std::vector<Expr> choose(Expr c, F&& then, G&& otherwise) {
  Builder& b = c.w->builder;
  Inst* inst = b.if_(c.v);
  auto fill = [&](Region* region, auto&& body) {
    b.at_end(region);
    std::vector<Value*> values;
    for (Expr e : body()) values.push_back(e.v);
    b.yield(values);
    b.after(inst);
    return values;
  };
  for (Value* v : fill(inst->region(0), then)) b.add_result(inst, v->type);
  fill(inst->region(1), otherwise);
  std::vector<Expr> results;
  for (Value& v : inst->results) results.push_back({c.w, &v});
  return results;
}

/// `choose` where `c` hardly ever holds and `otherwise` holds pure operations only: it may be run
/// for every argument, and a back end vectorises what is around it.
template <class F, class G>
std::vector<Expr> choose_rarely(Expr c, F&& rare, G&& otherwise) {
  std::vector<Expr> results = choose(c, rare, otherwise);
  results[0].v->inst->kind = rarely;
  return results;
}

}  // namespace quern::ir::math
