// Derivatives of the operation table against central differences in f64.
#include <cmath>
#include <string>
#include <vector>

#include "quern/ir/partials.h"
#include "tests/catch.h"
#include "tests/math/evaluator.h"
#include "tests/math/reference.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

namespace {
struct Row {
  Arena arena;
  Function value, derivative;
  bool zero = false;

  Row(Op op, size_t k, std::vector<Type> types, Type result) {
    Builder b(arena);
    for (Function* f : {&value, &derivative}) {
      f->body = b.make_region(std::span<const Type>(types));
      b.at_end(f->body);
      std::vector<Value*> args;
      for (Value& v : f->body->args) args.push_back(&v);
      Value* r = b.make(op, std::span<const Type>(&result, 1), args)->result();
      if (f == &derivative) {
        r = partial(b, op, args, r, k);
        zero = r == nullptr;
        if (zero) r = b.real(Type::f64, 0);
      }
      b.yield({r});
    }
  }
};

struct Case {
  Op op;
  std::vector<std::vector<double>> points;
};
}  // namespace

TEST_CASE("partials of float rows equal central differences") {
  const Case cases[] = {
      {Op::add, {{1.3, -2.1}}},
      {Op::sub, {{1.3, -2.1}}},
      {Op::mul, {{1.3, -2.1}, {0.0, 3.0}}},
      {Op::div, {{1.3, -2.1}, {-0.4, 0.3}}},
      {Op::neg, {{1.3}}},
      {Op::abs, {{1.3}, {-0.7}}},
      {Op::min, {{1.3, -2.1}, {-2.1, 1.3}}},
      {Op::max, {{1.3, -2.1}, {-2.1, 1.3}}},
      {Op::fmin, {{1.3, -2.1}, {-2.1, 1.3}}},
      {Op::fmax, {{1.3, -2.1}, {-2.1, 1.3}}},
      {Op::fma, {{1.3, -2.1, 0.4}}},
      {Op::sqrt, {{2.3}, {0.04}}},
      {Op::floor, {{1.3}}},
      {Op::ceil, {{1.3}}},
      {Op::trunc, {{-1.3}}},
      {Op::round, {{1.3}}},
      {Op::copysign, {{1.3, -2.1}, {-1.3, -2.1}, {1.3, 2.1}}},
      {Op::sin, {{1.3}, {-0.4}}},
      {Op::cos, {{1.3}, {-0.4}}},
      {Op::atan2, {{1.3, -2.1}, {-0.2, 0.7}, {2.0, 0.1}}},
      {Op::sinh, {{1.3}, {-0.2}}},
      {Op::cosh, {{1.3}, {-0.2}}},
      {Op::tanh, {{1.3}, {-0.2}, {3.0}}},
      {Op::sech2, {{1.3}, {-0.2}, {3.0}}},
      {Op::asinh, {{1.3}, {-0.2}, {40.0}}},
      {Op::acosh, {{1.3}, {20.0}}},
      {Op::atanh, {{0.7}, {-0.2}}},
      {Op::exp, {{1.3}, {-2.5}}},
      {Op::exp2, {{1.3}, {-2.5}}},
      {Op::expm1, {{1.3}, {-2.5}}},
      {Op::log, {{1.3}, {0.2}}},
      {Op::log2, {{1.3}, {0.2}}},
      {Op::log10, {{1.3}, {0.2}}},
      {Op::log1p, {{1.3}, {-0.2}}},
      {Op::pow, {{1.3, -2.1}, {0.4, 3.0}, {5.0, 0.5}}},
      {Op::cbrt, {{1.3}, {-0.2}}},
      {Op::rsqrt, {{1.3}, {0.02}}},
      {Op::hypot, {{1.3, -2.1}, {-0.4, 0.3}}},
  };
  for (const Case& c : cases)
    for (const auto& point : c.points)
      for (size_t k = 0; k < point.size(); k++) {
        Row row(c.op, k, std::vector<Type>(point.size(), Type::f64), Type::f64);
        Evaluator value(row.value), derivative(row.derivative);
        auto at = [&](Evaluator& f, double shift) {
          std::vector<double> p = point;
          p[k] += shift;
          p.resize(3);
          return f64_of(f({bits_of(p[0]), bits_of(p[1]), bits_of(p[2])}));
        };
        const double h = 1e-4;  // fourth-order differences: error about h⁴
        double wanted =
            (8 * (at(value, h) - at(value, -h)) - (at(value, 2 * h) - at(value, -2 * h))) /
            (12 * h);
        INFO(info(c.op).name << " operand " << k << " at " << point[0]);
        CHECK(at(derivative, 0) == Approx(wanted).epsilon(1e-8).margin(1e-9));
      }
}

TEST_CASE("partials at kinks and singular points follow their stated convention") {
  auto slope = [](Op op, double x) {
    Row row(op, 0, {Type::f64}, Type::f64);
    return f64_of(Evaluator(row.derivative)({bits_of(x)}));
  };
  auto at = [](Op op, size_t k, double x, double y) {
    Row row(op, k, {Type::f64, Type::f64}, Type::f64);
    return f64_of(Evaluator(row.derivative)({bits_of(x), bits_of(y)}));
  };
  for (Op op : {Op::min, Op::max, Op::fmin, Op::fmax}) {
    CHECK(at(op, 0, 2, 2) == 1);
    CHECK(at(op, 1, 2, 2) == 0);
  }
  CHECK(at(Op::fmin, 0, NAN, 2) == 0);
  CHECK(at(Op::fmin, 1, NAN, 2) == 1);
  CHECK(at(Op::fmax, 0, 2, NAN) == 1);
  CHECK(at(Op::pow, 0, 0, 0) == 0);
  CHECK(at(Op::pow, 0, 0, 1) == 1);
  CHECK(at(Op::pow, 0, 0, 2) == 0);
  CHECK(at(Op::pow, 1, 0, 2) == 0);
  CHECK(at(Op::pow, 0, -2, 3) == Approx(12));
  for (size_t k : {0, 1}) CHECK(at(Op::hypot, k, 0, 0) == 0);
  CHECK(slope(Op::tanh, 400) == 0);
  CHECK(slope(Op::cbrt, 0) == INFINITY);
  CHECK(slope(Op::acosh, 1e200) == Approx(1e-200));
  CHECK(at(Op::atan2, 0, 3e-200, 4e-200) == Approx(4.0 / 25 * 1e200));
}

TEST_CASE("a constant over what varies is divided once, for value and derivative") {
  for (Type type : {Type::f32, Type::f64})
    for (double a : {1.0, 2.0, -0.5, 3.0, -100.0, 1e4, 1e-4}) {
      INFO(name(type) << ", " << a);
      Arena arena;
      Function derivative;
      Builder b(arena);
      derivative.body = b.make_region({type, type});
      b.at_end(derivative.body);
      Value *x = derivative.body->arg(0), *t = derivative.body->arg(1);
      Value* operands[] = {b.real(type, a), x};
      Value* quotient = b.div(operands[0], x);
      b.yield({chain(b, Op::div, operands, quotient, 1, t)});
      int divisions = 0;
      walk(derivative.body, [&](const Inst* inst) { divisions += inst->is(Op::div); });
      CHECK(divisions == (std::fabs(a) > 256 || std::fabs(a) < 1.0 / 256 ? 2 : 1));
      Evaluator evaluate(derivative);
      const auto at = [&](double x_at, double t_at) {
        return real_of(evaluate({bits_of_real(x_at, type), bits_of_real(t_at, type)}), type);
      };
      const double eps = type == Type::f32 ? 0x1p-23 : 0x1p-52;
      for (double x_at : {1.0, -0.75, 0x1.8p-40, 0x1.4p50})
        for (double t_at : {1.0, -3.0, 0x1.2p20})
          CHECK(at(x_at, t_at) == Approx(-t_at * a / (x_at * x_at)).epsilon(3 * eps));
      CHECK(at(0, 0) == 0);
      CHECK(at(INFINITY, 1) == 0);
      CHECK(at(0, 1) == -std::copysign(INFINITY, a));
    }
}

TEST_CASE("partials of select and convert") {
  for (bool c : {false, true})
    for (size_t k : {1, 2}) {
      Row row(Op::select, k, {Type::b1, Type::f64, Type::f64}, Type::f64);
      double got = f64_of(Evaluator(row.derivative)({c, bits_of(1.0), bits_of(2.0)}));
      CHECK(got == ((k == 1) == c ? 1 : 0));
    }
  CHECK(Row(Op::select, 0, {Type::b1, Type::f64, Type::f64}, Type::f64).zero);
  CHECK_FALSE(Row(Op::convert, 0, {Type::f32}, Type::f64).zero);
  CHECK(Row(Op::convert, 0, {Type::i32}, Type::f64).zero);
}

TEST_CASE("rows that do not vary smoothly have no partial") {
  Arena arena;
  Builder b(arena);
  Region* r = b.make_region({Type::i32, Type::i32});
  b.at_end(r);
  Value* args[] = {r->arg(0), r->arg(1)};
  for (Op op : {Op::add, Op::rem, Op::bit_and, Op::shl, Op::lt}) {
    Value* result = b.binary(op, args[0], args[1]);
    CHECK(partial(b, op, args, result, 0) == nullptr);
  }
}
