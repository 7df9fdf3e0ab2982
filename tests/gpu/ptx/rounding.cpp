#include "tests/gpu/ptx/rounding.h"

#include <bit>
#include <cmath>

namespace quern::ptx {

namespace {

/// The sum of two doubles with the lowest bit set where it is not exact ("round to odd"): rounding
/// it once more is rounding the real sum (Boldo and Melquiond, "Emulation of FMA and Correctly
/// Rounded Sums", IEEE Trans. Computers 57, 2008).
double odd_sum(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double from_b = sum - a, error = (a - (sum - from_b)) + (b - from_b);
  if (error == 0) return sum;
  auto bits = std::bit_cast<uint64_t>(sum);
  if (bits & 1) return sum;
  const bool away = (error > 0) == (sum > 0);
  bits = away ? bits + 1 : bits - 1;
  return std::bit_cast<double>(bits);
}

}  // namespace

Half fused_half(Half a, Half b, Half c) { return Half(odd_sum(double(a) * double(b), double(c))); }

Half half_of(double v, Rounding r) {
  const auto nearest = Half(v);
  if (r == Rounding::nearest || !std::isfinite(v) || double(nearest) == v) return nearest;
  // The halves on both sides of v.
  const auto bits = std::bit_cast<uint16_t>(nearest);
  const bool is_above = double(nearest) > v, is_negative = std::signbit(v);
  const auto below =
      std::bit_cast<Half>(uint16_t(is_above ? (is_negative ? bits + 1 : bits - 1) : bits));
  const auto above =
      std::bit_cast<Half>(uint16_t(is_above ? bits : (is_negative ? bits - 1 : bits + 1)));
  switch (r) {
    case Rounding::down: return below;
    case Rounding::up: return above;
    default: return is_negative ? above : below;
  }
}

}  // namespace quern::ptx
