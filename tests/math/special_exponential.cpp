// Special values after C11 Annex F.10 of the exponential, logarithmic and hyperbolic functions,
// cbrt, rsqrt and hypot; results that are exact, subnormal or just beyond the range.
#include "tests/math/special.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

TEST_CASE("exp2 and expm1 at zeros, infinities, NaN and the ends of their range") {
  for (double s : {1.0, -1.0}) {
    both(Op::exp2, s * 0.0, 1);
    both(Op::expm1, s * 0.0, s * 0.0);
    expect<float>(Op::expm1, s * 0x1p-149, 0, s * 0x1p-149);
    expect<float>(Op::expm1, s * 0x1.8p-140, 0, s * 0x1.8p-140);
    expect<double>(Op::expm1, s * 0x1p-1074, 0, s * 0x1p-1074);
    expect<double>(Op::expm1, s * 0x1.8p-1060, 0, s * 0x1.8p-1060);
  }
  for (Op op : {Op::exp2, Op::expm1}) {
    both(op, not_a_number, not_a_number);
    both(op, inf, inf);
    both(op, 1e30, inf);
  }
  both(Op::exp2, -inf, 0.0);
  both(Op::exp2, -1e30, 0.0);
  both(Op::expm1, -inf, -1);
  both(Op::expm1, -1e30, -1);
  both(Op::expm1, -50, -1);
  for (int k = -149; k < 128; k++) expect<float>(Op::exp2, k, 0, std::ldexp(1.0, k));
  for (int k = -1074; k < 1024; k++) expect<double>(Op::exp2, k, 0, std::ldexp(1.0, k));
  expect<float>(Op::exp2, 128, 0, inf);
  expect<float>(Op::exp2, 0x1.fffffep6, 0, 0x1.ffff4ep127);  // 2^128 (1 - 2^-17 ln 2 …)
  expect<float>(Op::exp2, -151, 0, 0.0);
  expect<double>(Op::exp2, 1024, 0, inf);
  expect<double>(Op::exp2, -1076, 0, 0.0);
  // the last arguments before ln of the largest number plus half a place, and those after
  expect<float>(Op::expm1, 0x1.62e43p6, 0, inf);
  expect<double>(Op::expm1, 0x1.62e42fefa39fp9, 0, inf);
  CHECK(std::isfinite(call<float>(Op::expm1, 0x1.62e42ep6, 0)));
  CHECK(std::isfinite(call<double>(Op::expm1, 0x1.62e42fefa39efp9, 0)));
}

TEST_CASE("logarithms at zeros, one, infinities, NaN and below their domain") {
  for (Op op : {Op::log2, Op::log10}) {
    both(op, 0.0, -inf);
    both(op, -0.0, -inf);
    both(op, 1, 0.0);
    both(op, -1, not_a_number);
    both(op, -0x1p-140, not_a_number);
    both(op, -inf, not_a_number);
    both(op, inf, inf);
    both(op, not_a_number, not_a_number);
  }
  for (double s : {1.0, -1.0}) {
    both(Op::log1p, s * 0.0, s * 0.0);
    expect<float>(Op::log1p, s * 0x1p-149, 0, s * 0x1p-149);
    expect<double>(Op::log1p, s * 0x1.4p-1070, 0, s * 0x1.4p-1070);
  }
  both(Op::log1p, -1, -inf);
  both(Op::log1p, -1.5, not_a_number);
  both(Op::log1p, -inf, not_a_number);
  both(Op::log1p, inf, inf);
  both(Op::log1p, not_a_number, not_a_number);
  for (int k = -149; k < 128; k++) expect<float>(Op::log2, std::ldexp(1.0, k), 0, k);
  for (int k = -1074; k < 1024; k++) expect<double>(Op::log2, std::ldexp(1.0, k), 0, k);
  double power = 1;
  for (int k = 0; k <= 22; k++, power *= 10) {
    if (k <= 10) expect<float>(Op::log10, power, 0, k);
    expect<double>(Op::log10, power, 0, k);
  }
}

TEST_CASE("hyperbolic functions at zeros, infinities, NaN and the ends of their range") {
  for (double s : {1.0, -1.0}) {
    for (Op op : {Op::sinh, Op::tanh, Op::asinh, Op::atanh}) {
      both(op, s * 0.0, s * 0.0);
      expect<float>(op, s * 0x1p-149, 0, s * 0x1p-149);
      expect<float>(op, s * 0x1.8p-130, 0, s * 0x1.8p-130);
      expect<double>(op, s * 0x1p-1074, 0, s * 0x1p-1074);
      expect<double>(op, s * 0x1.8p-1040, 0, s * 0x1.8p-1040);
    }
    both(Op::cosh, s * 0.0, 1);
    both(Op::cosh, s * inf, inf);
    both(Op::sinh, s * inf, s * inf);
    both(Op::sinh, s * 1e30, s * inf);
    both(Op::cosh, s * 1e30, inf);
    both(Op::tanh, s * inf, s);
    both(Op::tanh, s * 1e30, s);
    both(Op::sech2, s * 0.0, 1);
    both(Op::sech2, s * inf, 0.0);
    both(Op::sech2, s * 1e30, 0.0);
    both(Op::asinh, s * inf, s * inf);
    both(Op::atanh, s, s * inf);
    both(Op::atanh, s * 1.5, not_a_number);
    both(Op::atanh, s * inf, not_a_number);
    // ln 2 above the largest argument of exp
    expect<float>(Op::sinh, s * 0x1.65a9fap6, 0, s * inf);
    CHECK(std::isfinite(call<float>(Op::sinh, s * 0x1.65a9f8p6, 0)));
    CHECK(std::isfinite(call<float>(Op::cosh, s * 0x1.65a9f8p6, 0)));
    expect<double>(Op::cosh, s * 0x1.633ce8fb9f87ep9, 0, inf);
    CHECK(std::isfinite(call<double>(Op::cosh, s * 0x1.633ce8fb9f87dp9, 0)));
    CHECK(std::isfinite(call<double>(Op::sinh, s * 0x1.633ce8fb9f87dp9, 0)));
  }
  both(Op::acosh, 1, 0.0);
  both(Op::acosh, inf, inf);
  for (double x : {0.5, 0.0, -1.0, -2.0, -inf}) both(Op::acosh, x, not_a_number);
  for (Op op : {Op::sinh, Op::cosh, Op::tanh, Op::sech2, Op::asinh, Op::acosh, Op::atanh})
    both(op, not_a_number, not_a_number);
  CHECK(std::isfinite(call<float>(Op::asinh, std::numeric_limits<float>::max(), 0)));
  CHECK(std::isfinite(call<double>(Op::acosh, std::numeric_limits<double>::max(), 0)));
}

TEST_CASE("cbrt, rsqrt and hypot at zeros, infinities, NaN; exact and extreme results") {
  for (double s : {1.0, -1.0}) {
    both(Op::cbrt, s * 0.0, s * 0.0);
    both(Op::cbrt, s * inf, s * inf);
    for (int k = 1; k < 200; k++) both(Op::cbrt, s * k * k * k, s * k);
    expect<float>(Op::cbrt, s * 0x1p-147, 0, s * 0x1p-49);
    expect<float>(Op::cbrt, s * 0x1p126, 0, s * 0x1p42);
    expect<double>(Op::cbrt, s * 0x1p-1074, 0, s * 0x1p-358);
    expect<double>(Op::cbrt, s * 0x1p1023, 0, s * 0x1p341);
  }
  both(Op::cbrt, not_a_number, not_a_number);
  for (double s : {1.0, -1.0}) both(Op::rsqrt, s * 0.0, s * inf);
  both(Op::rsqrt, inf, 0.0);
  for (double x : {-1.0, -inf, not_a_number}) both(Op::rsqrt, x, not_a_number);
  for (int k = 0; k < 63; k++) both(Op::rsqrt, std::ldexp(1.0, 2 * k), std::ldexp(1.0, -k));
  expect<float>(Op::rsqrt, 0x1p-148, 0, 0x1p74);
  expect<double>(Op::rsqrt, 0x1p-1074, 0, 0x1p537);
  for (double s : {1.0, -1.0}) {
    for (double other : {0.0, 3.0, -inf, inf, not_a_number}) {
      both(Op::hypot, s * inf, other, inf);
      both(Op::hypot, other, s * inf, inf);
    }
    for (double x : {0.0, 1.0, 3.5, 0x1p-126, 0x1p127}) {
      both(Op::hypot, s * x, 0.0, x);
      both(Op::hypot, -0.0, s * x, x);
    }
    both(Op::hypot, s * 3, 4, 5);
    both(Op::hypot, 12, s * 5, 13);
    expect<float>(Op::hypot, s * 0x3p-149, 0x4p-149, 0x5p-149);
    expect<float>(Op::hypot, 0x3p125, s * 0x4p125, 0x5p125);
    expect<double>(Op::hypot, s * 0x3p-1074, 0x4p-1074, 0x5p-1074);
    expect<double>(Op::hypot, 0x3p1021, s * 0x4p1021, 0x5p1021);
  }
  both(Op::hypot, not_a_number, 1, not_a_number);
  both(Op::hypot, 1, not_a_number, not_a_number);
  expect<float>(Op::hypot, 0x1.fffffep127, 0x1.fffffep127, inf);
  expect<double>(Op::hypot, 0x1.fffffffffffffp1023, 0x1p1023, inf);
}
