#include <array>

#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"
#include "ir/math/trig_parts.h"
#include "ir/math/wide.h"

namespace quern::ir::math {

// |x| = n·π/2 + r, |r| ≤ π/4; then ± sin r or ± cos r by n modulo 4 (Muller, Elementary Functions,
// chapter 11). Below 2^20 π/2 is subtracted in parts whose products with n are exact (Cody &
// Waite). Above, x = M·2^E is an integer multiple of a power of two and x·2/π modulo 4 needs only
// those digits of 2/π whose product with x lies between 2^1 and the precision wanted (Payne &
// Hanek, SIGNUM Newsletter 18(1), 1983): integer products with a window of the digits.

namespace {
constexpr double huge = 0x1p20;
/// Digit of 2/π (in two_over_pi_digits) that meets weight 2 when multiplied by 2^E is E + 62.
constexpr int64_t first_digit = 62;

struct Reduced {
  Expr quadrant;  ///< n modulo 4 in the low two bits, i64
  Pair r;
};

/// Words [j, j + count) of the digits of 2/π, j = at / 64 < 2^steps: a barrel shifter of selects.
template <size_t count, size_t steps>
std::array<Expr, count> digits_at(Expr at) {
  constexpr size_t all = count + (size_t(1) << steps) - 1;
  std::vector<Expr> words;
  for (size_t k = 0; k < all; k++)
    words.push_back(constant(at, Type::u64, k < 20 ? table::two_over_pi_digits[k] : 0));
  for (size_t step = steps; step-- > 0;) {
    Expr on = ((at >> (6 + step)) & 1) != 0;
    size_t distance = size_t(1) << step;
    size_t left = count + distance - 1;
    for (size_t k = 0; k < left; k++) words[k] = select(on, words[k + distance], words[k]);
  }
  std::array<Expr, count> window;
  for (size_t k = 0; k < count; k++) window[k] = words[k];
  return window;
}

/// 64 digits of high:low from `shift` (0 … 63) on.
Expr funnel(Expr high, Expr low, Expr shift) {
  return (high << shift) | ((low >> (63 - shift)) >> 1);
}

/// The upper 64 bits of a·b for a < 2^53.
Expr high_product(Expr a, Expr b) {
  Expr a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  Expr middle = a1 * b0 + ((a0 * b0) >> 32);  // < 2^54
  Expr other = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

/// The digits of `fraction`, a signed multiple of 2^-64 quarter turns, decide which way n rounds.
Expr quadrant_of(Expr top, Expr fraction) {
  return bitcast((top >> 62) + (fraction >> 63), Type::i64);
}

Reduced reduce_small_f64(Expr x) {
  Uncontracted keep(x);
  Rounded n = round_to_integer(x * table::two_over_pi);
  Expr first = x - n.value * table::half_pi[0];  // exact
  Pair second = two_sum(first, -(n.value * table::half_pi[1]));
  Pair third = two_sum(second.hi, -(n.value * table::half_pi[2]));
  Expr rest = (second.lo + third.lo) - n.value * table::half_pi[3];
  return {n.digits, fast_two_sum(third.hi, rest)};
}

Reduced reduce_huge_f64(Expr x) {
  Expr u = bits(x);
  Expr m = (u & 0x000fffffffffffffu) | 0x0010000000000000u;
  Expr at = (u >> 52) - uint64_t(1075 - first_digit);
  Expr shift = at & 63;
  auto word = digits_at<4, 5>(at);
  Expr w0 = funnel(word[0], word[1], shift), w1 = funnel(word[1], word[2], shift),
       w2 = funnel(word[2], word[3], shift);
  // the product modulo 2^192: two integer digits, then the fraction
  Expr p2 = m * w2;
  Expr carried = high_product(m, w2);
  Expr low = m * w1;
  Expr p1 = low + carried;
  Expr p0 = m * w0 + high_product(m, w1) + convert(p1 < low, Type::u64);
  Expr f0 = (p0 << 2) | (p1 >> 62), f1 = (p1 << 2) | (p2 >> 62);
  Expr negative = bitcast(bitcast(f0, Type::i64) >> 63, Type::u64);  // all ones or zero
  Expr a0 = f0 ^ negative, a1 = f1 ^ negative;
  auto piece = [](Expr word32, double unit) { return convert(word32, Type::f64) * unit; };
  Uncontracted keep(x);
  Pair f = fast_two_sum(piece(a0 >> 32, 0x1p-32), piece(a0 & 0xffffffffu, 0x1p-64));
  f = fast_two_sum(f.hi, f.lo + (piece(a1 >> 32, 0x1p-96) + piece(a1 & 0xffffffffu, 0x1p-128)));
  Expr hi = constant(x, Type::f64, table::half_pi_pair[0]),
       lo = constant(x, Type::f64, table::half_pi_pair[1]);
  Pair r = f * Pair{hi, lo};
  Expr sign = negative & sign_f64;
  return {quadrant_of(p0, f0), {flip_sign(r.hi, sign), flip_sign(r.lo, sign)}};
}

Expr sin_kernel(Pair r) {
  Pair p = sin_pair(r);
  return p.hi + p.lo;
}
Expr cos_kernel(Pair r) {
  Pair p = cos_pair(r);
  return p.hi + p.lo;
}

Expr by_quadrant(Expr quadrant, Expr sine, Expr cosine) {
  Expr value = select((quadrant & 1) != 0, cosine, sine);
  return flip_sign(value, bitcast((quadrant & 2) << 62, Type::u64));
}

Reduced reduce_f64(Expr ax) {
  auto values = choose_rarely(
      ax >= huge,
      [&] {
        Reduced r = reduce_huge_f64(ax);
        return std::vector{r.quadrant, r.r.hi, r.r.lo};
      },
      [&] {
        Reduced r = reduce_small_f64(ax);
        return std::vector{r.quadrant, r.r.hi, r.r.lo};
      });
  return {values[0], {values[1], values[2]}};
}

/// f32 needs no second half: its reduction is made in f64.
struct ReducedF32 {
  Expr quadrant, r;
};

ReducedF32 reduce_f32(Expr ax) {
  auto large = [&] {
    Expr u = bits(ax);
    Expr m = ((u & 0x000fffffffffffffu) | 0x0010000000000000u) >> 29;  // 24 bits
    Expr at = (u >> 52) - uint64_t(1023 + 23 - first_digit);
    Expr shift = at & 63;
    auto word = digits_at<3, 2>(at);
    Expr w0 = funnel(word[0], word[1], shift), w1 = funnel(word[1], word[2], shift);
    Expr p = m * w0 + ((m * (w1 >> 32)) >> 32);
    Expr f = p << 2;
    Expr r = convert(bitcast(f, Type::i64), Type::f64) * (table::half_pi_pair[0] * 0x1p-64);
    return std::vector{quadrant_of(p, f), r};
  };
  auto small = [&] {
    Rounded n = round_to_integer(ax * table::two_over_pi);
    Expr r = (ax - n.value * table::half_pi[0]) - n.value * (table::half_pi[1] + table::half_pi[2]);
    return std::vector{n.digits, r};
  };
  auto values = choose_rarely(ax >= huge, large, small);
  return {values[0], values[1]};
}

struct SinCos {
  Expr sine, cosine;
};
SinCos sin_cos_f32(Expr r) {
  Expr z = r * r;
  return {r * (1.0 + z * polynomial(z, table::sin_f32)),
          (1.0 - 0.5 * z) + (z * z) * polynomial(z, table::cos_f32)};
}

Expr f32_by_quadrant(Expr quadrant, Expr r) {
  SinCos s = sin_cos_f32(r);
  return by_quadrant(quadrant, s.sine, s.cosine);
}

Expr finite_only(Expr ax, Expr result) { return select(ax < infinity, result, not_a_number); }
}  // namespace

Expr sin_f64(Expr x) {
  Expr ax = abs(x);
  Reduced r = reduce_f64(ax);
  Expr result = by_quadrant(r.quadrant, sin_kernel(r.r), cos_kernel(r.r));
  return finite_only(ax, flip_sign(result, sign_of(x)));
}

Expr cos_f64(Expr x) {
  Expr ax = abs(x);
  Reduced r = reduce_f64(ax);
  return finite_only(ax, by_quadrant(r.quadrant + 1, sin_kernel(r.r), cos_kernel(r.r)));
}

Expr sin_f32(Expr x) {
  Expr wide = convert(x, Type::f64);
  Expr ax = abs(wide);
  ReducedF32 reduced = reduce_f32(ax);
  Expr result = f32_by_quadrant(reduced.quadrant, reduced.r);
  return convert(finite_only(ax, flip_sign(result, sign_of(wide))), Type::f32);
}

Expr cos_f32(Expr x) {
  Expr ax = abs(convert(x, Type::f64));
  ReducedF32 reduced = reduce_f32(ax);
  Expr result = f32_by_quadrant(reduced.quadrant + 1, reduced.r);
  return convert(finite_only(ax, result), Type::f32);
}

Expr tan_f64(Expr x) {
  Expr ax = abs(x);
  Reduced r = reduce_f64(ax);
  Expr odd = (r.quadrant & 1) != 0;
  Pair sine = sin_pair(r.r), cosine = cos_pair(r.r);
  Pair quotient = select(odd, Pair{-cosine.hi, -cosine.lo}, sine) / select(odd, sine, cosine);
  return finite_only(ax, flip_sign(quotient.hi + quotient.lo, sign_of(x)));
}

Expr tan_f32(Expr x) {
  Expr wide = convert(x, Type::f64);
  Expr ax = abs(wide);
  ReducedF32 reduced = reduce_f32(ax);
  SinCos s = sin_cos_f32(reduced.r);
  Expr odd = (reduced.quadrant & 1) != 0;
  Expr result = select(odd, -s.cosine, s.sine) / select(odd, s.sine, s.cosine);
  return convert(finite_only(ax, flip_sign(result, sign_of(wide))), Type::f32);
}

}  // namespace quern::ir::math
