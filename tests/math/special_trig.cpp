// Special values after C11 Annex F.10 of tan, the inverse trigonometric functions, the error and
// gamma functions, fmod and remainder; results that are exact.
#include "tests/math/special.h"

using namespace quern;
using namespace quern::ir;
using namespace quern::test;

TEST_CASE("tan and the inverse functions at zeros, ones, infinities and NaN") {
  for (Op op : {Op::tan, Op::asin, Op::atan}) {
    both(op, 0.0, 0.0);
    both(op, -0.0, -0.0);
    expect<float>(op, 0x1p-149, 0, 0x1p-149);
    expect<double>(op, -0x1p-1074, 0, -0x1p-1074);
    both(op, not_a_number, not_a_number);
  }
  for (double s : {1.0, -1.0}) {
    both(Op::tan, s * inf, not_a_number);
    both(Op::asin, s * 1.5, not_a_number);
    both(Op::acos, s * 1.5, not_a_number);
    both(Op::asin, s * inf, not_a_number);
    both(Op::acos, s * inf, not_a_number);
    expect<float>(Op::atan, s * inf, 0, s * 0x1.921fb6p0);  // ± π/2
    expect<double>(Op::atan, s * inf, 0, s * 0x1.921fb54442d18p0);
    expect<float>(Op::asin, s, 0, s * 0x1.921fb6p0);
    expect<double>(Op::asin, s, 0, s * 0x1.921fb54442d18p0);
  }
  both(Op::acos, 1, 0.0);
  expect<float>(Op::acos, -1, 0, 0x1.921fb6p1);  // π
  expect<double>(Op::acos, -1, 0, 0x1.921fb54442d18p1);
  both(Op::acos, not_a_number, not_a_number);
}

TEST_CASE("erf and erfc at zeros, infinities, NaN and the ends of their range") {
  both(Op::erf, 0.0, 0.0);
  both(Op::erf, -0.0, -0.0);
  both(Op::erfc, 0.0, 1);
  both(Op::erfc, -0.0, 1);
  for (double s : {1.0, -1.0}) {
    both(Op::erf, s * inf, s);
    both(Op::erf, s * 30, s);
  }
  both(Op::erfc, inf, 0.0);
  both(Op::erfc, 40, 0.0);
  both(Op::erfc, -inf, 2);
  both(Op::erfc, -40, 2);
  both(Op::erf, not_a_number, not_a_number);
  both(Op::erfc, not_a_number, not_a_number);
}

TEST_CASE("tgamma and lgamma at poles, infinities, NaN and small integers") {
  both(Op::tgamma, 0.0, inf);
  both(Op::tgamma, -0.0, -inf);
  both(Op::lgamma, 0.0, inf);
  both(Op::lgamma, -0.0, inf);
  for (double pole : {-1.0, -2.0, -7.0, -10.0, -11.0, -150.0, -1e6, -0x1p60}) {
    both(Op::tgamma, pole, not_a_number);
    both(Op::lgamma, pole, inf);
  }
  both(Op::tgamma, inf, inf);
  both(Op::tgamma, -inf, not_a_number);
  both(Op::lgamma, inf, inf);
  both(Op::lgamma, -inf, inf);
  both(Op::tgamma, not_a_number, not_a_number);
  both(Op::lgamma, not_a_number, not_a_number);
  both(Op::lgamma, 1, 0.0);
  both(Op::lgamma, 2, 0.0);
  double factorial = 1;
  for (int n = 1; n <= 18; n++) {  // 17! has 53 bits
    expect<double>(Op::tgamma, n, 0, factorial);
    if (n <= 13) expect<float>(Op::tgamma, n, 0, float(factorial));
    factorial *= n;
  }
  expect<double>(Op::tgamma, 172, 0, inf);
  expect<float>(Op::tgamma, 36, 0, inf);
  expect<float>(Op::tgamma, 0x1p-140, 0, inf);
  expect<double>(Op::lgamma, 0x1p1023, 0, inf);
}

TEST_CASE("fmod and remainder: signs, zeros, infinities, NaN, ties and quotients of any size") {
  for (Op op : {Op::fmod, Op::remainder}) {
    for (double y : {1.0, -3.0, inf, -inf}) {
      both(op, 0.0, y, 0.0);
      both(op, -0.0, y, -0.0);
      both(op, 6, y, std::isinf(y) ? 6 : 0.0);
      both(op, -6, y, std::isinf(y) ? -6 : -0.0);
    }
    for (double x : {1.0, -3.0, 0.0, inf}) both(op, x, 0.0, not_a_number);
    for (double y : {1.0, -3.0, inf}) both(op, inf, y, not_a_number);
    both(op, not_a_number, 1, not_a_number);
    both(op, 1, not_a_number, not_a_number);
    // the largest number is a multiple of every smaller power of two
    expect<double>(op, 0x1.fffffffffffffp1023, 0x1p-1074, 0.0);
    expect<float>(op, -0x1.fffffep127, 0x1p-149, -0.0);
  }
  for (double s : {1.0, -1.0}) {
    both(Op::fmod, s * 5, 3, s * 2);
    both(Op::fmod, s * 5, -3, s * 2);
    both(Op::remainder, s * 5, 3, s * -1);
    both(Op::remainder, s * 4, 3, s * 1);
    both(Op::remainder, s * 3, 2, s * -1);  // 1½: to the even quotient 2
    both(Op::remainder, s * 5, 2, s * 1);   // 2½: to 2
    both(Op::remainder, s * 1, 2, s * 1);   // ½: to 0
  }
  // 52 bits of quotient between subnormal numbers
  for (double x : {0x1.fffffffffffffp-1023, 0x1.ffffffffffffep-1023, 0x1.8p-1023}) {
    expect<double>(Op::fmod, x, 0x1p-1074, 0.0);
    expect<double>(Op::remainder, -x, 0x1p-1074, -0.0);
  }
  expect<double>(Op::remainder, 0x1.8p1023, 0x1p1023, -0x1p1022);  // 1½
  expect<double>(Op::fmod, 0x1.8p1023, 0x1p1023, 0x1p1022);
}
