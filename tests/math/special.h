#pragma once
// Checks of single results: value, sign of zero, NaN.
#include <cmath>
#include <limits>
#include <string>

#include "tests/catch.h"
#include "tests/math/evaluator.h"

namespace quern::test {
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class T>
T call(ir::Op op, double a, double b) {
  Evaluator run(ir::math_function(op, sizeof(T) == 4 ? ir::Type::f32 : ir::Type::f64));
  ir::Bits x = ir::bits_of(T(a)), y = ir::bits_of(T(b));
  ir::Bits out = run.parameters() == 2 ? run({x, y}) : run({x});
  return sizeof(T) == 4 ? T(ir::f32_of(out)) : T(ir::f64_of(out));
}

template <class T>
void expect(ir::Op op, double a, double b, double wanted) {
  T got = call<T>(op, a, b);
  INFO(ir::info(op).name << " f" << sizeof(T) * 8 << "(" << a << ", " << b << ") = " << got
                         << ", wanted " << wanted);
  if (std::isnan(wanted)) {
    CHECK(std::isnan(got));
  } else {
    CHECK(double(got) == double(T(wanted)));
    CHECK(std::signbit(got) == std::signbit(wanted));
  }
}
inline void both(ir::Op op, double a, double b, double wanted) {
  expect<float>(op, a, b, wanted);
  expect<double>(op, a, b, wanted);
}
inline void both(ir::Op op, double a, double wanted) { both(op, a, 0, wanted); }
}  // namespace quern::test
