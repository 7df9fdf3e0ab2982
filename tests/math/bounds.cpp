// Every function of the library against MPFR: errors in units in the last place over random and
// hard arguments, with strict arithmetic and with contraction. docs/math.md states what this
// prints.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/math/bounds.h"
#include "tests/math/evaluator.h"
#include "tests/math/reference.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

namespace {
struct Arguments {
  double a, b;
};

template <class T>
T any_bits(Random& random) {
  return sizeof(T) == 4 ? T(f32_of(random.bits() & 0xffffffff)) : T(f64_of(random.bits()));
}

/// A third all bit patterns, a third the range where the function is interesting, a third near the
/// places where cancellation or rounding is worst.
template <class T>
Arguments draw(Op op, Random& random) {
  constexpr double top = std::numeric_limits<T>::max_exponent;
  constexpr double bottom = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  const int kind = int(random.bits() % 3);
  if (kind == 0) return {double(any_bits<T>(random)), double(any_bits<T>(random))};
  const double limit = top * 0.6931;  // exp overflows here
  constexpr double digits = std::numeric_limits<T>::digits;
  auto one_plus = [&] { return 1 + random.spread(-digits - 1, -2); };
  switch (op) {
    case Op::sin:
    case Op::cos:
    case Op::tan:
      if (kind == 1) return {random.uniform(-10, 10), 0};
      // nearest number to a multiple of π/4, also beyond the switch of reductions
      return {double(T(std::round(random.spread(0, 30)) * 0.78539816339744831)), 0};
    case Op::exp:
    case Op::expm1:
    case Op::sinh:
    case Op::cosh:
      if (kind == 1) return {random.uniform(-1, 1) * 1.06 * limit, 0};
      return {random.spread(bottom, 3), 0};
    case Op::sech2:
      if (kind == 1) return {random.uniform(-1, 1) * 0.6 * limit, 0};
      return {random.spread(bottom, 3), 0};
    case Op::exp2:
      if (kind == 1) return {random.uniform(-1, 1) * 1.2 * top, 0};
      return {random.spread(-digits - 2, 3), 0};
    case Op::tanh:
    case Op::asinh:
    case Op::erf:
    case Op::atan:
      if (kind == 1) return {random.uniform(-6, 6), 0};
      return {random.spread(bottom, 3), 0};
    case Op::erfc:
      if (kind == 1) return {random.uniform(-6, sizeof(T) == 4 ? 11 : 28), 0};
      return {random.spread(-digits, 3), 0};
    case Op::asin:
    case Op::acos:
    case Op::atanh:
      if (kind == 1) return {random.uniform(-1, 1), 0};
      return {random.bits() & 1 ? -one_plus() : 2 - std::fabs(one_plus()), 0};
    case Op::acosh:
      if (kind == 1) return {1 + std::fabs(random.spread(-digits, 1)), 0};
      return {std::fabs(random.spread(0, 80)), 0};
    case Op::log:
    case Op::log2:
    case Op::log10:
      if (kind == 1) return {one_plus(), 0};
      return {std::fabs(random.spread(-2, 8)), 0};
    case Op::log1p:
      if (kind == 1) return {random.spread(bottom, 2), 0};
      return {one_plus() - 2, 0};
    case Op::cbrt: return {random.spread(bottom, top), 0};
    case Op::rsqrt: return {std::fabs(random.spread(bottom, top)), 0};
    case Op::tgamma:
    case Op::lgamma:
      if (kind == 1) return {random.uniform(-180, 180), 0};
      return {std::round(random.uniform(-40, 40)) + random.spread(-digits, -1), 0};
    case Op::atan2:
    case Op::hypot:
    case Op::fmod:
    case Op::remainder:
      if (kind == 1) return {random.uniform(-2, 2), random.uniform(-2, 2)};
      {
        double x = random.spread(bottom, top - 1);
        return {x * random.spread(-3, 3), x};
      }
    default:
      if (kind == 1) {
        double x =
            std::exp2(random.bits() & 1 ? random.uniform(-3, 3) : random.uniform(bottom, top));
        return {x, random.uniform(-1, 1) * limit / std::max(0.01, std::fabs(std::log(x)))};
      }
      // near 1 with a huge exponent: the logarithm's low bits decide
      double x = 1 + random.spread(-6.0 * double(sizeof(T)), -1);
      return {double(T(x)), double(T(random.uniform(-1, 1) * limit / std::log(x)))};
  }
}

/// Beside the zeros of lgamma at negative arguments, which are irrational, the error has an
/// absolute bound: units of this size count there.
template <class T>
double in_units_beside_zeros(double ulps, T got) {
  const double unit = sizeof(T) == 4 ? 0x1p-50 : 0x1p-55;
  double place =
      std::nextafter(std::fabs(got), std::numeric_limits<T>::infinity()) - std::fabs(got);
  return std::min(ulps, ulps * place / unit);
}

/// The ends of the ranges of normal and subnormal numbers.
template <class T>
std::vector<double> ends() {
  using Limits = std::numeric_limits<T>;
  std::vector<double> all;
  for (T x : {Limits::denorm_min(), std::nextafter(Limits::min(), T(0)), Limits::min(),
              std::nextafter(T(1), T(0)), std::nextafter(T(1), T(2)), Limits::max()})
    all.insert(all.end(), {double(x), -double(x)});
  return all;
}

template <class T>
double worst(Op op, int count, bool contract, Arguments& where) {
  Evaluator run(math_function(op, sizeof(T) == 4 ? Type::f32 : Type::f64), contract);
  const bool two = run.parameters() == 2;
  Reference reference(op);
  Random random(uint64_t(op) * 1000 + sizeof(T));
  const std::vector<double> first = ends<T>();
  double most = 0;
  for (int k = 0; k < count; k++) {
    Arguments args = draw<T>(op, random);
    if (k < int(first.size())) args.a = first[k];
    args = {double(T(args.a)), double(T(args.b))};
    Bits a = bits_of(T(args.a)), b = bits_of(T(args.b));
    Bits out = two ? run({a, b}) : run({a});
    T got = sizeof(T) == 4 ? T(f32_of(out)) : T(f64_of(out));
    reference.compute(args.a, args.b);
    double error = reference.ulps<T>(got);
    if (op == Op::lgamma && args.a < 0) error = in_units_beside_zeros(error, got);
    if (error > most) {
      most = error;
      where = args;
    }
  }
  return most;
}

template <class T>
void check(Op op, double bound) {
  for (bool contract : {false, true}) {
    Arguments where{};
    double most = worst<T>(op, contract ? 50000 : 200000, contract, where);
    std::printf("%-6s f%d %-10s %.4f ulp at %a%s", std::string(info(op).name).c_str(),
                int(sizeof(T)) * 8, contract ? "contracted" : "strict", most, where.a,
                info(op).operands == 2 ? "" : "\n");
    if (info(op).operands == 2) std::printf(", %a\n", where.b);
    INFO(info(op).name << " " << sizeof(T) * 8 << " at " << where.a << ", " << where.b);
    CHECK(most <= bound);
  }
}
}  // namespace

TEST_CASE("math functions keep their error bounds in f32") {
  for (const Bound& f : bounds) DYNAMIC_SECTION(info(f.op).name) {
      check<float>(f.op, f.f32);
    }
}
TEST_CASE("math functions keep their error bounds in f64") {
  for (const Bound& f : bounds) DYNAMIC_SECTION(info(f.op).name) {
      check<double>(f.op, f.f64);
    }
}

TEST_CASE("sin and cos at the numbers nearest to multiples of π/2") {
  // Muller, Elementary Functions, table 11.1: the hardest arguments of each format.
  const double hard_f64 = std::ldexp(6381956970095103.0, 797),
               hard_f32 = std::ldexp(16367173.0, 72);
  for (Op op : {Op::sin, Op::cos}) {
    Reference reference(op);
    Evaluator f64(math_function(op, Type::f64)), f32(math_function(op, Type::f32));
    for (double sign : {1.0, -1.0})
      for (double multiple : {1.0, 2.0, 4.0, 0.5}) {
        double x = sign * multiple * hard_f64, y = sign * multiple * hard_f32;
        reference.compute(x, 0);
        CHECK(reference.ulps<double>(f64_of(f64({bits_of(x)}))) < 1.5);
        reference.compute(y, 0);
        CHECK(reference.ulps<float>(f32_of(f32({bits_of(float(y))}))) < 1.5);
      }
  }
}
