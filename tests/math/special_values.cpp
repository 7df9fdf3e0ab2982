// Special values after C11 Annex F.10 (sin, cos, atan2, exp, log, pow).
#include "tests/math/special.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

TEST_CASE("sin, cos, exp and log at zeros, infinities and NaN") {
  for (double s : {1.0, -1.0}) {
    both(Op::sin, s * 0.0, s * 0.0);
    both(Op::sin, s * inf, not_a_number);
    both(Op::cos, s * 0.0, 1);
    both(Op::cos, s * inf, not_a_number);
    both(Op::exp, s * 0.0, 1);
    both(Op::log, s * 0.0, -inf);
  }
  for (Op op : {Op::sin, Op::cos, Op::exp, Op::log}) both(op, not_a_number, not_a_number);
  both(Op::exp, inf, inf);
  both(Op::exp, -inf, 0.0);
  both(Op::exp, 1e30, inf);
  both(Op::exp, -1e30, 0.0);
  both(Op::log, 1, 0.0);
  both(Op::log, -1, not_a_number);
  both(Op::log, -inf, not_a_number);
  both(Op::log, inf, inf);
  expect<float>(Op::sin, 0x1p-149, 0, 0x1p-149);
  expect<double>(Op::sin, -0x1p-1074, 0, -0x1p-1074);
}

TEST_CASE("atan2 at zeros, infinities and NaN") {
  const double pi = 3.14159265358979323846;
  for (double s : {1.0, -1.0}) {
    both(Op::atan2, s * 0.0, -0.0, s * pi);
    both(Op::atan2, s * 0.0, 0.0, s * 0.0);
    both(Op::atan2, s * 0.0, -2, s * pi);
    both(Op::atan2, s * 0.0, 2, s * 0.0);
    both(Op::atan2, s * 3, 0.0, s * pi / 2);
    both(Op::atan2, s * 3, -0.0, s * pi / 2);
    both(Op::atan2, s * 3, -inf, s * pi);
    both(Op::atan2, s * 3, inf, s * 0.0);
    both(Op::atan2, s * inf, 3, s * pi / 2);
    both(Op::atan2, s * inf, -inf, s * 3 * pi / 4);
    both(Op::atan2, s * inf, inf, s * pi / 4);
    both(Op::atan2, s * 5, 5, s * pi / 4);
    both(Op::atan2, not_a_number, s, not_a_number);
    both(Op::atan2, s * inf, not_a_number, not_a_number);
  }
}

TEST_CASE("pow follows the table of Annex F.10.4.4") {
  const double big = 1e30;
  for (double y : {-3.0, -1.0, -5.0}) {
    both(Op::pow, 0.0, y, inf);
    both(Op::pow, -0.0, y, -inf);
  }
  for (double y : {-2.0, -0.5, -big, -inf}) {
    both(Op::pow, 0.0, y, inf);
    both(Op::pow, -0.0, y, inf);
  }
  for (double y : {1.0, 3.0, 5.0}) {
    both(Op::pow, 0.0, y, 0.0);
    both(Op::pow, -0.0, y, -0.0);
  }
  for (double y : {2.0, 0.5, big, inf}) {
    both(Op::pow, 0.0, y, 0.0);
    both(Op::pow, -0.0, y, 0.0);
  }
  both(Op::pow, -1, inf, 1);
  both(Op::pow, -1, -inf, 1);
  for (double y : {0.0, -0.0, 1.0, -3.5, inf, -inf, not_a_number}) both(Op::pow, 1, y, 1);
  for (double x : {0.0, -0.0, 1.0, -3.5, inf, -inf, not_a_number}) {
    both(Op::pow, x, 0.0, 1);
    both(Op::pow, x, -0.0, 1);
  }
  both(Op::pow, -2, 0.5, not_a_number);
  both(Op::pow, -2, -1.5, not_a_number);
  for (double x : {0.5, -0.5, 0.0}) {
    both(Op::pow, x, -inf, inf);
    both(Op::pow, x, inf, 0.0);
  }
  for (double x : {2.0, -2.0, inf, -inf}) {
    both(Op::pow, x, -inf, 0.0);
    both(Op::pow, x, inf, inf);
  }
  both(Op::pow, -inf, -3, -0.0);
  both(Op::pow, -inf, -2, 0.0);
  both(Op::pow, -inf, -0.5, 0.0);
  both(Op::pow, -inf, 3, -inf);
  both(Op::pow, -inf, 2, inf);
  both(Op::pow, -inf, 0.5, inf);
  both(Op::pow, inf, -2, 0.0);
  both(Op::pow, inf, 0.25, inf);
  both(Op::pow, not_a_number, 1, not_a_number);
  both(Op::pow, 2, not_a_number, not_a_number);
  both(Op::pow, -2, 3, -8);
  both(Op::pow, -2, 2, 4);
  both(Op::pow, 2, 10, 1024);
  both(Op::pow, 10, 2, 100);
  both(Op::pow, 2, -100, 0x1p-100);
  expect<double>(Op::pow, -1, 0x1.fffffffffffffp52, -1);  // the largest odd integer
  expect<double>(Op::pow, -1, 0x1p53, 1);
  expect<float>(Op::pow, -1, 0x1.fffffep23, -1);
  expect<double>(Op::pow, 2, -1074, 0x1p-1074);
  expect<double>(Op::pow, 2, -1075.5, 0.0);
  expect<double>(Op::pow, 2, 1024, inf);
  expect<double>(Op::pow, -2, 1023, -0x1p1023);
  expect<float>(Op::pow, 2, -149, 0x1p-149);
  expect<float>(Op::pow, 2, 128, inf);
}

TEST_CASE("exact arguments of pow and exp give exact results") {
  for (int b = 2; b < 100; b++)
    for (int e = 1; e < 8; e++) {
      double value = std::pow((long double)b, e);
      if (value < 0x1p53) expect<double>(Op::pow, b, e, value);
      if (value < 0x1p24) expect<float>(Op::pow, b, e, value);
    }
  for (int k = -1074; k < 1024; k++) expect<double>(Op::pow, 2, k, std::ldexp(1.0, k));
}
