// Every function of one argument at all 2^32 f32 arguments, strict and contracted, against the C
// library's double functions and, wherever those do not decide, MPFR. Minutes each, so hidden:
//   ./dev test --long math-exponential            all of a family
//   test_math "[math-exponential]" -c exp2        one
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/math/bounds.h"
#include "tests/math/compiled.h"
#include "tests/math/reference.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

namespace {
/// The C library's function in double precision.
auto libm(Op op) -> double (*)(double) {
  switch (op) {
    case Op::sin: return std::sin;
    case Op::cos: return std::cos;
    case Op::tan: return std::tan;
    case Op::asin: return std::asin;
    case Op::acos: return std::acos;
    case Op::atan: return std::atan;
    case Op::sinh: return std::sinh;
    case Op::cosh: return std::cosh;
    case Op::tanh: return std::tanh;
    case Op::sech2: return [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); };
    case Op::asinh: return std::asinh;
    case Op::acosh: return std::acosh;
    case Op::atanh: return std::atanh;
    case Op::exp: return std::exp;
    case Op::exp2: return std::exp2;
    case Op::expm1: return std::expm1;
    case Op::log: return std::log;
    case Op::log2: return std::log2;
    case Op::log10: return std::log10;
    case Op::log1p: return std::log1p;
    case Op::cbrt: return std::cbrt;
    case Op::rsqrt: return [](double x) { return 1 / std::sqrt(x); };
    case Op::erf: return std::erf;
    case Op::erfc: return std::erfc;
    case Op::tgamma: return std::tgamma;
    case Op::lgamma: return std::lgamma;
    default: throw std::logic_error("no double function for " + std::string(info(op).name));
  }
}

/// As Reference::ulps<float> to 10^-6, given the value in double precision.
double ulps_near(double value, float got) {
  constexpr double undecided = 1e9;
  if (std::isnan(value) && std::isnan(got)) return 0;
  if (std::isinf(got) && std::fabs(value) >= 0x1p128)
    return std::signbit(value) == std::signbit(got) ? 0 : undecided;
  if (!std::isfinite(got) || !std::isfinite(value)) return undecided;
  const uint64_t exponent = bits_of(value) >> 52 & 0x7ff;
  const uint64_t bounded = std::clamp<uint64_t>(exponent, 1023 - 126, 1023 + 127);
  return std::fabs(double(got) - value) * f64_of((2046 - bounded + 23) << 52);
}

struct Worst {
  double ulps = 0.45;  ///< what every rounded function reaches somewhere
  float at = 0;
  /// Takes in the results y at the numbers whose bits are first, first + 1, …
  void add(uint32_t first, const std::vector<double>& values, const std::vector<float>& y,
           Reference& reference) {
    for (size_t k = 0; k < y.size(); k++) {
      if (ulps_near(values[k], y[k]) <= ulps - 1e-6) continue;
      const float x = f32_of(first + uint32_t(k));
      reference.compute(x, 0);
      const double error = reference.ulps<float>(y[k]);
      if (error > ulps) *this = {error, x};
    }
  }
  void add(const Worst& other) {
    if (other.ulps > ulps) *this = other;
  }
};

/// The largest errors of a function over all arguments, with strict arithmetic and contracted.
class Search {
 public:
  explicit Search(Op op) : op_(op), strict_(op, true), contracted_(op, false) {
    std::vector<std::thread> threads;
    for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); k++)
      threads.emplace_back([this] { work(); });
    for (std::thread& t : threads) t.join();
  }
  Worst strict, contracted;

 private:
  static constexpr uint64_t chunk = 1 << 20, all = uint64_t(1) << 32;

  void work() {
    Reference reference(op_);
    const auto function = libm(op_);
    std::vector<float> x(chunk), y(chunk), z(chunk);
    std::vector<double> values(chunk);
    Worst first, second;
    for (uint64_t at; (at = next_.fetch_add(chunk)) < all;) {
      for (size_t k = 0; k < chunk; k++) {
        x[k] = f32_of(uint32_t(at + k));
        values[k] = function(x[k]);
      }
      {
        std::lock_guard lock(mutex_);
        strict_(x.data(), y.data(), chunk);
        contracted_(x.data(), z.data(), chunk);
      }
      first.add(uint32_t(at), values, y, reference);
      second.add(uint32_t(at), values, z, reference);
    }
    std::lock_guard lock(mutex_);
    strict.add(first);
    contracted.add(second);
  }

  Op op_;
  Compiled strict_, contracted_;
  std::atomic<uint64_t> next_ = 0;
  std::mutex mutex_;
};

void expect_bounds(std::initializer_list<Op> family) {
  for (Op op : family) DYNAMIC_SECTION(info(op).name) {
      const Bound& f = *std::ranges::find(bounds, op, &Bound::op);
      Search search(op);
      for (auto [name, worst] :
           {std::pair{"strict", search.strict}, {"contracted", search.contracted}}) {
        std::printf("%-6s %-10s %.4f ulp at %a\n", std::string(info(op).name).c_str(), name,
                    worst.ulps, double(worst.at));
        INFO(info(op).name << " " << name << " at " << worst.at);
        CHECK(worst.ulps <= f.f32);
      }
      std::fflush(stdout);
    }
}

constexpr std::initializer_list<Op> trigonometric = {Op::sin,  Op::cos,  Op::tan,
                                                     Op::asin, Op::acos, Op::atan};
constexpr std::initializer_list<Op> hyperbolic = {Op::sinh,  Op::cosh,  Op::tanh, Op::sech2,
                                                  Op::asinh, Op::acosh, Op::atanh};
constexpr std::initializer_list<Op> exponential = {Op::exp,  Op::exp2,  Op::expm1, Op::log,
                                                   Op::log2, Op::log10, Op::log1p};
constexpr std::initializer_list<Op> others = {Op::cbrt, Op::rsqrt,  Op::erf,
                                              Op::erfc, Op::tgamma, Op::lgamma};
}  // namespace

TEST_CASE("the families of functions are all functions of one argument") {
  std::multiset<Op> in_families, with_bounds;
  for (const auto& family : {trigonometric, hyperbolic, exponential, others})
    in_families.insert(family.begin(), family.end());
  for (const Bound& f : bounds)
    if (info(f.op).operands == 1) with_bounds.insert(f.op);
  CHECK(in_families == with_bounds);
}

TEST_CASE("trigonometric functions keep their error bounds at all f32 arguments",
          "[cpu][.long][math-trigonometric]") {
  expect_bounds(trigonometric);
}
TEST_CASE("hyperbolic functions keep their error bounds at all f32 arguments",
          "[cpu][.long][math-hyperbolic]") {
  expect_bounds(hyperbolic);
}
TEST_CASE("exponentials and logarithms keep their error bounds at all f32 arguments",
          "[cpu][.long][math-exponential]") {
  expect_bounds(exponential);
}
TEST_CASE("roots, error and gamma functions keep their error bounds at all f32 arguments",
          "[cpu][.long][math-others]") {
  expect_bounds(others);
}
