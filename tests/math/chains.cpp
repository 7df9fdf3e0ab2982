// Products with derivatives of the operation table, at the edges of what operands may be, against
// MPFR; and what docs/semantics.md says of kinks, poles and infinities, case by case.
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "quern/ir/partials.h"
#include "quern/ir/verify.h"
#include "tests/catch.h"
#include "tests/math/special.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

namespace {

constexpr Type float_types[] = {Type::f16, Type::f32, Type::f64};

/// A number of 300 bits, whose exponent has no end.
class Real {
 public:
  Real(double v = 0) { mpfr_init2(v_, 300), mpfr_set_d(v_, v, MPFR_RNDN); }
  Real(const Real& r) : Real() { mpfr_set(v_, r.v_, MPFR_RNDN); }
  Real& operator=(const Real& r) { return mpfr_set(v_, r.v_, MPFR_RNDN), *this; }
  ~Real() { mpfr_clear(v_); }

  using Unary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  using Binary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);
  Real of(Unary f) const {
    Real r;
    f(r.v_, v_, MPFR_RNDN);
    return r;
  }
  Real with(Binary f, const Real& b) const {
    Real r;
    f(r.v_, v_, b.v_, MPFR_RNDN);
    return r;
  }
  friend Real operator+(const Real& a, const Real& b) { return a.with(mpfr_add, b); }
  friend Real operator-(const Real& a, const Real& b) { return a.with(mpfr_sub, b); }
  friend Real operator*(const Real& a, const Real& b) { return a.with(mpfr_mul, b); }
  friend Real operator/(const Real& a, const Real& b) { return a.with(mpfr_div, b); }
  Real operator-() const { return of(mpfr_neg); }

  double number() const { return mpfr_get_d(v_, MPFR_RNDN); }
  bool is_number() const { return mpfr_number_p(v_) != 0; }

 private:
  mpfr_t v_;
};

Real pi() { return Real(-1).of(mpfr_acos); }
Real square(const Real& a) { return a * a; }

double least_normal(Type t) {
  return t == Type::f64 ? 0x1p-1022 : t == Type::f32 ? 0x1p-126 : 0x1p-14;
}
double least(Type t) { return t == Type::f64 ? 0x1p-1074 : t == Type::f32 ? 0x1p-149 : 0x1p-24; }
double largest(Type t) {
  return t == Type::f64 ? 0x1.fffffffffffffp1023 : t == Type::f32 ? 0x1.fffffep127 : 65504;
}
double epsilon(Type t) { return t == Type::f64 ? 0x1p-52 : t == Type::f32 ? 0x1p-23 : 0x1p-10; }

/// ∂op/∂operand k by the textbook, at finite operands.
Real derivative(Op op, size_t k, const std::vector<double>& x) {
  const Real a = x[0], b = x.size() > 1 ? x[1] : 0;
  const double sign_a = std::signbit(x[0]) ? -1 : 1;
  switch (op) {
    case Op::add: return 1;
    case Op::sub: return k == 0 ? 1 : -1;
    case Op::mul:
    case Op::fma: return k == 2 ? Real(1) : k == 1 ? a : b;
    case Op::div: return k == 0 ? 1 / b : -(a / b) / b;
    case Op::neg: return -1;
    case Op::abs: return sign_a;
    case Op::min:
    case Op::fmin: return (k == 0) == (x[0] <= x[1]) ? 1 : 0;
    case Op::max:
    case Op::fmax: return (k == 0) == (x[0] >= x[1]) ? 1 : 0;
    case Op::copysign: return k == 0 ? sign_a * std::copysign(1, x[1]) : 0;
    case Op::select: return k == 0 ? 0 : (k == 1) == (x[0] != 0) ? 1 : 0;
    case Op::sqrt: return 1 / (2 * a.of(mpfr_sqrt));
    case Op::sin: return a.of(mpfr_cos);
    case Op::cos: return -a.of(mpfr_sin);
    case Op::tan: return 1 / square(a.of(mpfr_cos));
    case Op::asin: return 1 / (1 - square(a)).of(mpfr_sqrt);
    case Op::acos: return -1 / (1 - square(a)).of(mpfr_sqrt);
    case Op::atan: return 1 / (1 + square(a));
    case Op::atan2: return (k == 0 ? b : -a) / (square(a) + square(b));
    case Op::sinh: return a.of(mpfr_cosh);
    case Op::cosh: return a.of(mpfr_sinh);
    case Op::tanh: return 1 / square(a.of(mpfr_cosh));
    case Op::sech2: return -2 * a.of(mpfr_tanh) / square(a.of(mpfr_cosh));
    case Op::asinh: return 1 / (1 + square(a)).of(mpfr_sqrt);
    case Op::acosh: return 1 / (square(a) - 1).of(mpfr_sqrt);
    case Op::atanh: return 1 / (1 - square(a));
    case Op::exp:
    case Op::expm1: return a.of(mpfr_exp);
    case Op::exp2: return a.of(mpfr_exp2) * Real(2).of(mpfr_log);
    case Op::log: return 1 / a;
    case Op::log2: return 1 / (a * Real(2).of(mpfr_log));
    case Op::log10: return 1 / (a * Real(10).of(mpfr_log));
    case Op::log1p: return 1 / (1 + a);
    case Op::pow:
      return k == 0 ? b * a.with(mpfr_pow, b - 1) : a.with(mpfr_pow, b) * a.of(mpfr_log);
    case Op::cbrt: return 1 / (3 * square(a.of(mpfr_cbrt)));
    case Op::rsqrt: return a.of(mpfr_rec_sqrt) / (-2 * a);
    case Op::hypot: return (k == 0 ? a : b) / (square(a) + square(b)).of(mpfr_sqrt);
    case Op::erf: return 2 / pi().of(mpfr_sqrt) * (-square(a)).of(mpfr_exp);
    case Op::erfc: return -2 / pi().of(mpfr_sqrt) * (-square(a)).of(mpfr_exp);
    case Op::tgamma: return a.of(mpfr_gamma) * a.of(mpfr_digamma);
    case Op::lgamma: return a.of(mpfr_digamma);
    case Op::fmod:
      return k == 0 ? Real(1)
                    : -(a / b).of([](auto r, auto v, mpfr_rnd_t) { return mpfr_trunc(r, v); });
    case Op::remainder:
      return k == 0 ? Real(1) : -(a / b).of([](auto r, auto v, mpfr_rnd_t) {
        return mpfr_rint_roundeven(r, v, MPFR_RNDN);
      });
    default: FAIL("no derivative of " << info(op).name);
  }
  return 0;
}

/// The relative error that the product may have in units of the type's epsilon: a few roundings,
/// and what the rules are known to amplify.
double roundings(Op op, size_t k, Type type, const std::vector<double>& x, double derivative) {
  switch (op) {
    case Op::erf:
    case Op::erfc: return 8 + x[0] * x[0];  // that of x² becomes e's
    case Op::pow:                           // that of b - 1 likewise
      return k == 1 || x[0] == 0 ? 8 : 8 + std::fabs((x[1] - 1) * std::log(std::fabs(x[0])));
    case Op::hypot:  // that of a subnormal result
      return 8 + least(type) / epsilon(type) / std::hypot(x[0], x[1]);
    case Op::tgamma: {  // ψ cancels near its zeros
      const double psi = std::fabs(derivative / std::tgamma(x[0]));
      return 32 * (1 + psi) / psi;
    }
    case Op::lgamma: return 32 * (1 + std::fabs(derivative)) / std::fabs(derivative);
    default: return 8;
  }
}

/// Is a^(b - 1) a number of the type, and the parity of b - 1 that of a number of it? Otherwise the
/// rule for the base of pow has not what it needs.
bool has_power(Type t, const std::vector<double>& x) {
  if (x[1] == 0) return true;
  const double power = Real(x[0]).with(mpfr_pow, Real(x[1]) - 1).number();
  const bool odd_is_number = std::fabs(x[1]) < 2 / epsilon(t == Type::f16 ? Type::f32 : t);
  return std::fabs(power) <= largest(t) && (x[0] >= 0 || odd_is_number);
}

/// Functions of the operands and t.
struct Row {
  Op op;
  size_t k;
  Type type;
  std::vector<Type> types;
  Kernel kernel;
  bool zero = false;
  std::unique_ptr<Evaluator> value, product, contracted, last;

  Row(Op op_, size_t k_, Type type_) : op(op_), k(k_), type(type_) {
    types.assign(size_t(info(op).operands), type);
    if (op == Op::select) types[0] = Type::b1;
    kernel.level = Level::structured;
    Builder b(kernel);
    kernel.body = b.make_region();
    b.at_end(kernel.body);
    b.yield();
    std::vector<Type> with_t = types;
    with_t.push_back(type);
    for (const char* what : {"value", "product", "last product"}) {
      const bool differentiated = !kernel.callees.empty();
      Function f;
      f.name = what;
      f.body = b.make_region(std::span<const Type>(with_t));
      f.results = {type};
      b.at_end(f.body);
      std::vector<Value*> args;
      for (Value& v : f.body->args) args.push_back(&v);
      Value* t = args.back();
      args.pop_back();
      Value* r = b.make(op, std::span<const Type>(&type, 1), args)->result();
      if (differentiated) {
        r = chain(b, op, args, r, k, t, kernel.callees.size() == 1 ? Further::yes : Further::no);
        zero = r == nullptr;
        if (zero) r = b.real(type, 0);
      }
      b.yield({r});
      kernel.callees.push_back(f);
    }
    value = std::make_unique<Evaluator>(kernel.callees[0]);
    product = std::make_unique<Evaluator>(kernel.callees[1]);
    contracted = std::make_unique<Evaluator>(kernel.callees[1], true);
    last = std::make_unique<Evaluator>(kernel.callees[2]);
  }

  double run(Evaluator& f, const std::vector<double>& x, double t) const {
    Bits bits[4] = {};
    size_t n = 0;
    for (; n < x.size(); n++)
      bits[n] = types[n] == Type::b1 ? x[n] != 0 : bits_of_real(x[n], types[n]);
    bits[n] = bits_of_real(t, type);
    return real_of(f({bits[0], bits[1], bits[2], bits[3]}), type);
  }
  double at(const std::vector<double>& x, double t) const { return run(*product, x, t); }
  double result(const std::vector<double>& x) const { return run(*value, x, 0); }
  std::string place(const std::vector<double>& x, double t) const {
    std::string text = std::string(info(op).name) + " " + std::string(name(type)) + " operand " +
                       std::to_string(k) + " at";
    char word[40];
    for (double v : x) std::snprintf(word, sizeof word, " %.17g", v), text += word;
    std::snprintf(word, sizeof word, ", t = %g", t);
    return text + word;
  }
};

/// Rows on floats of one type that have a derivative.
std::vector<Op> smooth_rows() {
  struct Rule {
    Op op;
    std::string_view name;
  };
  constexpr Rule rules[] = {
#define QUERN_OP(name, rule, operands, classes, flags, fold, partial, weight) {Op::name, #partial},
#define QUERN_FORM(name, form, kind, names, regions, levels, flags)
#include "quern/ir/ops.def"
  };
  std::vector<Op> rows;
  for (const Rule& r : rules)
    if (r.name != "zero" && r.op != Op::convert) rows.push_back(r.op);
  return rows;
}

/// Finite numbers of the type: zeros, ends, edges of domains, and some between.
std::vector<double> edges(Type t, bool few) {
  std::vector<double> positive = {0, least(t), least_normal(t), 0.5, 1, 1 + epsilon(t),
                                  2, 3,        largest(t)};
  if (!few)
    positive.insert(positive.end(), {least(t) * 5, 1e-4, 0.1, 1 - epsilon(t) / 2, 1.4375, 1.5, 5.75,
                                     8.5, 20.25, 170.5, 900, largest(t) / 4});
  std::vector<double> all;
  for (double v : positive)
    for (double s : {1.0, -1.0}) all.push_back(real_of(bits_of_real(s * v, t), t));
  return all;
}

/// All operands of a row made of `values`.
std::vector<std::vector<double>> points(Op op, const std::vector<double>& values) {
  std::vector<std::vector<double>> all = {{}};
  for (int k = 0; k < info(op).operands; k++) {
    std::vector<std::vector<double>> longer;
    for (const auto& p : all)
      for (double v : op == Op::select && k == 0 ? std::vector<double>{0, 1} : values) {
        longer.push_back(p);
        longer.back().push_back(v);
      }
    all = longer;
  }
  return all;
}

void each_row(const std::function<void(const Row&)>& visit) {
  for (Op op : smooth_rows())
    for (Type type : float_types)
      for (size_t k = 0; k < size_t(info(op).operands); k++) visit(Row(op, k, type));
}

}  // namespace

TEST_CASE("products with derivatives equal those of the mathematical functions") {
  std::map<Op, int> checked;
  each_row([&](const Row& row) {
    for (const auto& x : points(row.op, edges(row.type, info(row.op).operands > 1))) {
      if (!std::isfinite(row.result(x))) continue;  // outside of the domain, or of the range
      const Real exact = derivative(row.op, row.k, x);
      if (!exact.is_number()) continue;
      if (row.op == Op::pow && row.k == 0 && !has_power(row.type, x)) continue;
      auto check = [&](Evaluator& product, double t) {
        const double wanted = (Real(t) * exact).number(), got = row.run(product, x, t);
        INFO(row.place(x, t) << ": " << got << ", wanted " << wanted);
        checked[row.op]++;
        if (std::fabs(wanted) > largest(row.type)) {
          CHECK(std::fabs(got) >= largest(row.type) * (1 - 8 * epsilon(row.type)));
          CHECK(std::signbit(got) == std::signbit(wanted));
          return;
        }
        // Below the normal numbers what counts is the distance; on f16, where rules run in f32,
        // that of its numbers.
        const double small = row.type == Type::f16 ? least(row.type) : least_normal(row.type);
        const double off = (Real(got) - Real(t) * exact).of(mpfr_abs).number();
        const double units = roundings(row.op, row.k, row.type, x, exact.number());
        const double relative = std::min(units * epsilon(row.type), 1.0) * std::fabs(wanted);
        CHECK(off <= relative + 2 * small * std::fabs(t));
      };
      for (double t : {1.0, -2.5}) check(*row.product, t), check(*row.contracted, t);
    }
  });
  for (Op op : smooth_rows()) {
    INFO(info(op).name);
    CHECK(checked[op] >= 3 * 2 * 10);
  }
}

TEST_CASE("a zero factor gives a zero at all finite operands, poles and outside of domains") {
  int singular = 0;
  each_row([&](const Row& row) {
    for (const auto& x : points(row.op, edges(row.type, info(row.op).operands > 1)))
      for (double t : {0.0, -0.0}) {
        INFO(row.place(x, t));
        CHECK(row.at(x, t) == 0);
        singular += !std::isfinite(row.at(x, 1));
      }
  });
  CHECK(singular > 1000);
}

TEST_CASE("what is built for products keeps the rules of the IR") {
  each_row([](const Row& row) {
    INFO(row.place({}, 0));
    CHECK(verify(row.kernel).empty());
    CHECK(row.zero ==
          ((row.op == Op::copysign && row.k == 1) || (row.op == Op::select && row.k == 0)));
  });
}

TEST_CASE("derivatives at kinks, poles, infinities and NaN are those of docs/semantics.md") {
  struct Convention {
    Op op;
    size_t k;
    std::vector<double> x;
    double wanted;  ///< of t = 1
  };
  const std::vector<Convention> conventions = {
      // kinks
      {Op::abs, 0, {0.0}, 1},
      {Op::abs, 0, {-0.0}, -1},
      {Op::abs, 0, {inf}, 1},
      {Op::abs, 0, {-inf}, -1},
      {Op::copysign, 0, {0.0, -1}, -1},
      {Op::copysign, 0, {-0.0, -1}, 1},
      {Op::copysign, 0, {-3, -0.0}, 1},
      {Op::min, 0, {2, 2}, 1},
      {Op::min, 1, {2, 2}, 0},
      {Op::max, 0, {0.0, -0.0}, 1},
      {Op::max, 1, {-0.0, 0.0}, 0},
      {Op::fmin, 0, {2, 2}, 1},
      {Op::fmax, 1, {2, 2}, 0},
      {Op::min, 0, {not_a_number, 2}, 1},
      {Op::min, 1, {not_a_number, 2}, 0},
      {Op::max, 0, {2, not_a_number}, 1},
      {Op::fmin, 0, {not_a_number, 2}, 0},
      {Op::fmin, 1, {not_a_number, 2}, 1},
      {Op::fmax, 0, {2, not_a_number}, 1},
      {Op::fmax, 1, {2, not_a_number}, 0},
      {Op::min, 1, {inf, 2}, 1},
      {Op::select, 1, {1, 3, not_a_number}, 1},
      {Op::select, 2, {1, 3, not_a_number}, 0},
      // poles
      {Op::div, 0, {1, 0.0}, inf},
      {Op::div, 0, {1, -0.0}, -inf},
      {Op::div, 1, {1, 0.0}, -inf},
      {Op::div, 1, {1, -0.0}, -inf},
      {Op::div, 1, {-1, 0.0}, inf},
      {Op::div, 1, {0.0, 0.0}, not_a_number},
      {Op::sqrt, 0, {0.0}, inf},
      {Op::sqrt, 0, {-0.0}, -inf},
      {Op::rsqrt, 0, {0.0}, -inf},
      {Op::rsqrt, 0, {-0.0}, -inf},
      {Op::cbrt, 0, {0.0}, inf},
      {Op::cbrt, 0, {-0.0}, inf},
      {Op::log, 0, {0.0}, inf},
      {Op::log, 0, {-0.0}, -inf},
      {Op::log2, 0, {0.0}, inf},
      {Op::log10, 0, {-0.0}, -inf},
      {Op::log1p, 0, {-1}, inf},
      {Op::asin, 0, {1}, inf},
      {Op::asin, 0, {-1}, inf},
      {Op::acos, 0, {1}, -inf},
      {Op::acos, 0, {-1}, -inf},
      {Op::acosh, 0, {1}, inf},
      {Op::atanh, 0, {1}, inf},
      {Op::atanh, 0, {-1}, inf},
      {Op::lgamma, 0, {0.0}, -inf},
      {Op::tgamma, 0, {0.0}, -inf},
      {Op::tgamma, 0, {-2}, not_a_number},
      {Op::fmod, 0, {1, 0.0}, 1},
      {Op::fmod, 1, {1, 0.0}, not_a_number},
      {Op::remainder, 1, {1, 0.0}, not_a_number},
      {Op::hypot, 0, {0.0, 0.0}, 0},
      {Op::hypot, 1, {0.0, -0.0}, 0},
      {Op::atan2, 0, {0.0, 0.0}, not_a_number},
      {Op::atan2, 1, {-0.0, 0.0}, not_a_number},
      // pow
      {Op::pow, 0, {0.0, 0.0}, 0},
      {Op::pow, 0, {0.0, 1}, 1},
      {Op::pow, 0, {-0.0, 1}, 1},
      {Op::pow, 0, {0.0, 2}, 0},
      {Op::pow, 0, {0.0, 0.5}, inf},
      {Op::pow, 0, {0.0, -1}, -inf},
      {Op::pow, 0, {-2, 3}, 12},
      {Op::pow, 0, {-2, 0}, 0},
      {Op::pow, 0, {inf, 0}, 0},
      {Op::pow, 0, {not_a_number, 0}, 0},
      {Op::pow, 0, {inf, 2}, inf},
      {Op::pow, 0, {inf, 0.5}, 0},
      {Op::pow, 0, {-2, 0.5}, not_a_number},
      {Op::pow, 0, {0.5, inf}, not_a_number},
      {Op::pow, 1, {0.0, 2}, 0},
      {Op::pow, 1, {0.0, 0.0}, -inf},
      {Op::pow, 1, {0.0, -1}, -inf},
      {Op::pow, 1, {-2, 3}, not_a_number},
      {Op::pow, 1, {1, not_a_number}, 0},
      {Op::pow, 1, {inf, -1}, 0},
      {Op::pow, 1, {0.5, inf}, 0},
      // infinities
      {Op::mul, 0, {2, inf}, inf},
      {Op::div, 0, {1, inf}, 0},
      {Op::div, 1, {1, -inf}, 0},
      {Op::div, 1, {inf, 2}, -inf},
      {Op::div, 1, {inf, inf}, not_a_number},
      {Op::sqrt, 0, {inf}, 0},
      {Op::rsqrt, 0, {inf}, 0},
      {Op::cbrt, 0, {-inf}, 0},
      {Op::sin, 0, {inf}, not_a_number},
      {Op::cos, 0, {-inf}, not_a_number},
      {Op::tan, 0, {inf}, not_a_number},
      {Op::atan, 0, {-inf}, 0},
      {Op::atan2, 0, {1, inf}, not_a_number},
      {Op::atan2, 1, {-inf, 1}, not_a_number},
      {Op::sinh, 0, {-inf}, inf},
      {Op::cosh, 0, {-inf}, -inf},
      {Op::tanh, 0, {inf}, 0},
      {Op::tanh, 0, {-inf}, 0},
      {Op::sech2, 0, {inf}, 0},
      {Op::sech2, 0, {-inf}, 0},
      {Op::asinh, 0, {-inf}, 0},
      {Op::acosh, 0, {inf}, 0},
      {Op::exp, 0, {-inf}, 0},
      {Op::exp, 0, {inf}, inf},
      {Op::exp2, 0, {-inf}, 0},
      {Op::expm1, 0, {-inf}, 0},
      {Op::log, 0, {inf}, 0},
      {Op::log2, 0, {inf}, 0},
      {Op::log10, 0, {inf}, 0},
      {Op::log1p, 0, {inf}, 0},
      {Op::hypot, 0, {inf, 1}, not_a_number},
      {Op::hypot, 1, {inf, 1}, 0},
      {Op::erf, 0, {-inf}, 0},
      {Op::erfc, 0, {inf}, 0},
      {Op::tgamma, 0, {inf}, inf},
      {Op::lgamma, 0, {inf}, inf},
      {Op::fmod, 1, {5, inf}, 0},
      {Op::remainder, 0, {5, -inf}, 1},
  };
  for (const Convention& c : conventions)
    for (Type type : float_types) {
      const Row row(c.op, c.k, type);
      for (double t : {1.0, -2.5}) {
        const double got = row.at(c.x, t), wanted = t * c.wanted;
        INFO(row.place(c.x, t) << ": " << got << ", wanted " << wanted);
        CHECK((std::isnan(wanted) ? std::isnan(got) : got == wanted));
      }
    }
}

TEST_CASE("a NaN operand gives a NaN where the function computes with it") {
  each_row([](const Row& row) {
    if (!info(row.op).library && row.op != Op::sqrt && row.op != Op::div) return;
    const bool remainder = row.op == Op::fmod || row.op == Op::remainder;
    if (remainder && row.k == 0) return;  // 1 everywhere
    for (size_t which = 0; which < size_t(info(row.op).operands); which++) {
      if (row.op == Op::div && row.k == 0 && which == 0) continue;  // 1 / b
      std::vector<double> x(size_t(info(row.op).operands), 3);
      x[which] = not_a_number;
      INFO(row.place(x, 1));
      CHECK(std::isnan(row.at(x, 1)));
    }
  });
}

TEST_CASE(
    "a zero factor gives NaN through infinite factors, and zero through functions with poles") {
  auto at_zero = [](Op op, size_t k, const std::vector<double>& x) {
    std::vector<double> got;
    for (Type type : float_types) got.push_back(Row(op, k, type).at(x, 0));
    return got;
  };
  auto all = [](const std::vector<double>& v, auto holds) { return std::ranges::all_of(v, holds); };
  auto is_nan = [](double v) { return std::isnan(v); };
  auto is_zero = [](double v) { return v == 0; };
  CHECK(all(at_zero(Op::mul, 0, {2, inf}), is_nan));
  CHECK(all(at_zero(Op::fma, 1, {-inf, 2, 2}), is_nan));
  for (Op op : {Op::sin, Op::cos, Op::tan}) CHECK(all(at_zero(op, 0, {inf}), is_nan));
  CHECK(all(at_zero(Op::hypot, 0, {inf, 1}), is_nan));
  for (Op op : {Op::sqrt, Op::rsqrt, Op::cbrt, Op::asin, Op::acos, Op::acosh, Op::atanh, Op::sinh,
                Op::cosh, Op::exp, Op::exp2, Op::expm1, Op::log, Op::log2, Op::log10, Op::log1p,
                Op::tgamma, Op::lgamma})
    for (double x : {inf, -inf, not_a_number}) {
      INFO(info(op).name << " at " << x);
      CHECK(all(at_zero(op, 0, {x}), is_zero));
    }
  for (Op op : {Op::div, Op::pow, Op::atan2, Op::fmod, Op::remainder})
    for (size_t k : {0, 1})
      for (double x : {2.0, inf, -inf, not_a_number})
        for (double y : {2.0, inf, -inf, not_a_number}) {
          INFO(info(op).name << " operand " << k << " at " << x << " " << y);
          CHECK(all(at_zero(op, k, {x, y}), is_zero));
        }
}

TEST_CASE("products that are not differentiated again are the same, but for the signs of zeros") {
  const std::vector<double> factors = {0, -0.0, 1, -2.5, inf, -inf, not_a_number};
  each_row([&](const Row& row) {
    std::vector<double> values = edges(row.type, true);
    values.insert(values.end(), {inf, -inf, not_a_number});
    bool same = true;
    for (const std::vector<double>& x : points(row.op, values))
      for (double t : factors) {
        const double again = row.at(x, t), last = row.run(*row.last, x, t);
        if (again == last || (std::isnan(again) && std::isnan(last))) continue;
        UNSCOPED_INFO(row.place(x, t) << ": " << again << " and " << last);
        same = false;
      }
    CHECK(same);
  });
}

TEST_CASE("a conversion between floats passes the factor on, another one has no derivative") {
  Arena arena;
  Builder b(arena);
  Region* region = b.make_region({Type::i32, Type::f32, Type::f64});
  b.at_end(region);
  Value *whole = region->arg(0), *single = region->arg(1), *twice = region->arg(2);
  auto product = [&](Value* from, Type to, Value* t) {
    Value* operands[] = {from};
    return chain(b, Op::convert, operands, b.convert(from, to), 0, t);
  };
  CHECK(product(single, Type::f64, twice) == twice);
  CHECK(product(twice, Type::f32, single) == single);
  CHECK(product(whole, Type::f64, twice) == nullptr);
  CHECK(product(twice, Type::i32, whole) == nullptr);
}

TEST_CASE("no product overflows on the way") {
  auto at = [](Op op, size_t k, Type type, std::vector<double> x, double t) {
    return Row(op, k, type).at(x, t);
  };
  CHECK(at(Op::div, 1, Type::f64, {1e200, 1e250}, 1e300) == Approx(-1));
  CHECK(at(Op::div, 1, Type::f32, {0, 0x1p-149}, 1) == 0);
  CHECK(at(Op::acosh, 0, Type::f64, {1e200}, 1e200) == Approx(1));
  CHECK(at(Op::asinh, 0, Type::f64, {1e200}, 1e200) == Approx(1));
  CHECK(at(Op::atan2, 0, Type::f64, {3e-200, 4e-200}, 1e-200) == Approx(4.0 / 25));
  CHECK(at(Op::hypot, 0, Type::f64, {3e200, 4e200}, 1) == Approx(0.6));
  CHECK(at(Op::tanh, 0, Type::f32, {40}, 0x1p100) ==
        Approx(4 * std::exp(-80.0) * 0x1p100).epsilon(1e-5));
  // in f32, where 1 / cosh² and e^(-x²) are no halves
  CHECK(at(Op::tanh, 0, Type::f16, {10}, 30000) ==
        Approx(4 * std::exp(-20.0) * 30000).epsilon(1e-2));
}

TEST_CASE("products are differentiable, also where t is zero") {
  // d²/dx² by the rules applied to what they built. The first derivative is zero at the points.
  const auto second = [](const std::function<Value*(Builder&, Value*)>& build, Type type,
                         double x) {
    Arena arena;
    Builder b(arena);
    Function f;
    f.body = b.make_region({type});
    b.at_end(f.body);
    Value* y = build(b, f.body->arg(0));
    for (int order = 0; order < 2; order++) {
      std::unordered_map<Value*, Value*> tangents = {{f.body->arg(0), b.real(type, 1)}};
      std::vector<Inst*> primal;
      for (Inst* inst : *f.body) primal.push_back(inst);
      for (Inst* inst : primal) {
        std::vector<Value*> operands;
        for (const Use& use : inst->operands) operands.push_back(use.value);
        for (size_t k = 0; k < operands.size(); k++) {
          Value*& sum = tangents[inst->result()];
          Value* t = tangents[operands[k]];
          if (!t) continue;
          Value* term = chain(b, inst->op, operands, inst->result(), k, t);
          if (term) sum = sum ? b.add(sum, term) : term;
        }
      }
      y = tangents[y];
    }
    b.yield({y});
    Evaluator run(f);
    return real_of(run({bits_of_real(x, type)}), type);
  };
  struct Function1 {
    const char* text;
    std::function<Value*(Builder&, Value*)> build;
    double x, wanted;
  };
  // g(1 + x²) and g(x²) at 0 have the second derivatives 2g'(1) and 2g'(0).
  const auto of_square = [](double shift, auto g) {
    return [=](Builder& b, Value* x) {
      Value* square = b.mul(x, x);
      Value* s = b.real(x->type, shift);
      return g(b, b.add(square, s));
    };
  };
  const auto unary = [](Op op) { return [=](Builder& b, Value* v) { return b.unary(op, v); }; };
  const auto with = [](Op op, double c, bool first) {
    return [=](Builder& b, Value* v) {
      Value* other = b.real(v->type, c);
      return first ? b.binary(op, v, other) : b.binary(op, other, v);
    };
  };
  const Function1 functions[] = {
      {"sqrt(1 + x²)", of_square(1, unary(Op::sqrt)), 0, 1},
      {"log(1 + x²)", of_square(1, unary(Op::log)), 0, 2},
      {"log2(1 + x²)", of_square(1, unary(Op::log2)), 0, 2 / std::log(2.0)},
      {"log1p(x²)", of_square(0, unary(Op::log1p)), 0, 2},
      {"exp(x²)", of_square(0, unary(Op::exp)), 0, 2},
      {"exp2(x²)", of_square(0, unary(Op::exp2)), 0, 2 * std::log(2.0)},
      {"expm1(x²)", of_square(0, unary(Op::expm1)), 0, 2},
      {"sinh(x²)", of_square(0, unary(Op::sinh)), 0, 2},
      {"cosh(1 + x²)", of_square(1, unary(Op::cosh)), 0, 2 * std::sinh(1.0)},
      {"asin(x²)", of_square(0, unary(Op::asin)), 0, 2},
      {"acos(x²)", of_square(0, unary(Op::acos)), 0, -2},
      {"acosh(2 + x²)", of_square(2, unary(Op::acosh)), 0, 2 / std::sqrt(3.0)},
      {"atanh(x²)", of_square(0, unary(Op::atanh)), 0, 2},
      {"cbrt(1 + x²)", of_square(1, unary(Op::cbrt)), 0, 2.0 / 3},
      {"rsqrt(1 + x²)", of_square(1, unary(Op::rsqrt)), 0, -1},
      {"tgamma(1 + x²)", of_square(1, unary(Op::tgamma)), 0, -2 * 0.57721566490153286},
      {"lgamma(1 + x²)", of_square(1, unary(Op::lgamma)), 0, -2 * 0.57721566490153286},
      {"(1 + x²) / 2", of_square(1, with(Op::div, 2, true)), 0, 1},
      {"3 / (1 + x²)", of_square(1, with(Op::div, 3, false)), 0, -6},
      {"0 / (1 + x²)", of_square(1, with(Op::div, 0, false)), 0, 0},
      {"pow(1 + x², 1.5)", of_square(1, with(Op::pow, 1.5, true)), 0, 3},
      {"pow(3, x²)", of_square(0, with(Op::pow, 3, false)), 0, 2 * std::log(3.0)},
      {"hypot(1 + x², 1)", of_square(1, with(Op::hypot, 1, true)), 0, std::sqrt(2.0)},
      {"atan2(x², 2)", of_square(0, with(Op::atan2, 2, true)), 0, 1},
      {"fmod(7, 2 + x²)", of_square(2, with(Op::fmod, 7, false)), 0, -6},
      // not at zeros of the first one
      {"tanh", unary(Op::tanh), 0, 0},
      {"tanh", unary(Op::tanh), 0.5, -2 * std::tanh(0.5) / std::pow(std::cosh(0.5), 2)},
      {"tanh", unary(Op::tanh), 100, 0},
      {"atan2(x, 2)", with(Op::atan2, 2, true), 1, -4.0 / 25},
      {"hypot(x, 2)", with(Op::hypot, 2, true), 0, 0.5},
      {"pow(x, 3)", with(Op::pow, 3, true), 0, 0},
      {"x² / x", [](Builder& b, Value* x) { return b.div(b.mul(x, x), x); }, 3, 0},
      {"pow(x, x)", [](Builder& b, Value* x) { return b.binary(Op::pow, x, x); }, 1, 2},
  };
  for (const Function1& f : functions)
    for (Type type : {Type::f32, Type::f64}) {
      INFO(f.text << " at " << f.x << " in " << name(type));
      const double tolerance = type == Type::f64 ? 1e-13 : 3e-6;
      CHECK(second(f.build, type, f.x) == Approx(f.wanted).epsilon(tolerance).margin(tolerance));
    }
  // ∂²/∂a∂b of a^b at b = 0 is 1 / a: of pow(a, x) with a = 3 + x it is in the second derivative
  // d²/dx² (3 + x)^x at 0 = log² 3 + 2 / 3.
  const auto mixed = [](Builder& b, Value* x) {
    Value* a = b.add(x, b.real(x->type, 3));
    return b.binary(Op::pow, a, x);
  };
  CHECK(second(mixed, Type::f64, 0) == Approx(std::pow(std::log(3.0), 2) + 2.0 / 3).epsilon(1e-13));
}
