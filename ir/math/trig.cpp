#include <array>
#include <vector>

#include "ir/math/coefficients.h"
#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// |x| = n·π/2 + r, |r| ≤ π/4; then ± sin r or ± cos r by n modulo 4 (Muller, Elementary Functions,
// chapter 11). For |x| below some thousands π/2 is subtracted in parts whose products with n are
// exact (Cody & Waite). Above, x = M·2^E is an integer multiple of a power of two and x·2/π modulo
// 4 needs only those digits of 2/π whose product with x lies between 2^1 and the precision wanted
// (Payne & Hanek, SIGNUM Newsletter 18(1), 1983): integer products with a window of the digits.
// That is so rare that it is a branch of its own.

namespace {
struct Reduced {
  Expr n;  ///< modulo 4 in the low two bits, a signed word
  Pair r;
};

/// Digit of 2/π (in two_over_pi_digits) that meets weight 2 when multiplied by 2^E is E + 62.
constexpr int64_t first_digit = 62;

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

/// All differences but that which gives r.hi are exact.
Reduced reduce_small(Expr ax) {
  const bool wide = ax.type() == Type::f64;
  const double shift = wide ? 0x1.8p52 : 0x1.8p23;  // as in round_to_integer
  Expr t = ax * table::two_over_pi + shift;
  Expr n = t - shift;
  Expr rest = ax - n * (wide ? table::half_pi[0] : table::half_pi_parts_single[0]);
  if (!wide) rest = rest - n * table::half_pi_parts_single[1];
  const double next = wide ? table::half_pi[1] : table::half_pi_parts_single[2];
  const double last = wide ? table::half_pi[2] : table::half_pi_parts_single[3];
  Expr hi = rest - n * next;
  Expr lost = (rest - hi) - n * next;
  return {bitcast(t, format(ax).integer), {hi, lost - n * last}};
}

Reduced reduce_huge_f64(Expr ax) {
  Expr u = bits(ax);
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
  Uncontracted keep(ax);
  Pair f = fast_two_sum(piece(a0 >> 32, 0x1p-32), piece(a0 & 0xffffffffu, 0x1p-64));
  f = fast_two_sum(f.hi, f.lo + (piece(a1 >> 32, 0x1p-96) + piece(a1 & 0xffffffffu, 0x1p-128)));
  Expr hi = constant(ax, Type::f64, table::half_pi_pair[0]),
       lo = constant(ax, Type::f64, table::half_pi_pair[1]);
  Pair r = f * Pair{hi, lo};
  Expr sign = negative & sign_f64;
  return {quadrant_of(p0, f0), {flip_sign(r.hi, sign), flip_sign(r.lo, sign)}};
}

Reduced reduce_huge_f32(Expr ax) {
  Expr u = bits(convert(ax, Type::f64));
  Expr m = ((u & 0x000fffffffffffffu) | 0x0010000000000000u) >> 29;  // 24 bits
  Expr at = (u >> 52) - uint64_t(1023 + 23 - first_digit);
  Expr shift = at & 63;
  auto word = digits_at<3, 2>(at);
  Expr w0 = funnel(word[0], word[1], shift), w1 = funnel(word[1], word[2], shift);
  Expr p = m * w0 + ((m * (w1 >> 32)) >> 32);
  Expr f = p << 2;
  Expr r = convert(bitcast(f, Type::i64), Type::f64) * (table::half_pi_pair[0] * 0x1p-64);
  Expr hi = convert(r, Type::f32);
  return {convert(quadrant_of(p, f), Type::i32),
          {hi, convert(r - convert(hi, Type::f64), Type::f32)}};
}

/// `finish` of the reduced |x|; NaN for an infinity.
template <class F>
Expr by_reduction(Expr x, F&& finish) {
  const bool wide = x.type() == Type::f64;
  Expr ax = abs(x);
  auto huge = [&] {
    Expr result = finish(wide ? reduce_huge_f64(ax) : reduce_huge_f32(ax));
    return std::vector{select(ax < infinity, result, not_a_number)};
  };
  auto small = [&] { return std::vector{finish(reduce_small(ax))}; };
  return choose_rarely(ax >= (wide ? 0x1p17 : 0x1.8p11), huge, small)[0];
}

Expr sine(Pair r) {
  Expr z = r.hi * r.hi;
  Expr p = z.type() == Type::f64 ? polynomial(z, table::sin_f64) : polynomial(z, table::sin_single);
  return r.hi + ((r.hi * z) * p + r.lo);
}
Expr cosine(Pair r) {
  Expr z = r.hi * r.hi;
  Expr p = z.type() == Type::f64 ? polynomial(z, table::cos_f64) : polynomial(z, table::cos_single);
  return 1.0 + z * (z * p - 0.5);
}
/// sin of r plus `quadrant` quarter turns.
Expr sine_from(Expr quadrant, Pair r) {
  Expr value = select((quadrant & 1) != 0, cosine(r), sine(r));
  const Format& f = format(value);
  return flip_sign(value, sign_of(float_of(quadrant << (f.digits == 52 ? 62 : 30))));
}

/// tan r, or -1 / tan r where n is odd.
Expr tangent(const Reduced& x) {
  Expr r = x.r.hi, z = r * r;
  Expr p = z.type() == Type::f64 ? polynomial(z, table::tan_f64) : polynomial(z, table::tan_single);
  Pair t = fast_two_sum(r, (r * z) * p + x.r.lo * (1.0 + z));
  Expr inverse = -1.0 / t.hi;
  return select((x.n & 1) != 0, inverse + (inverse * inverse) * t.lo, t.hi);
}

Expr sin_of(Expr x) {
  Expr result = by_reduction(x, [](const Reduced& a) { return sine_from(a.n, a.r); });
  return flip_sign(result, sign_of(x));
}
Expr cos_of(Expr x) {
  return by_reduction(x, [](const Reduced& a) { return sine_from(a.n + 1, a.r); });
}
Expr tan_of(Expr x) { return flip_sign(by_reduction(x, tangent), sign_of(x)); }
}  // namespace

Expr sin_f32(Expr x) { return sin_of(x); }
Expr sin_f64(Expr x) { return sin_of(x); }
Expr cos_f32(Expr x) { return cos_of(x); }
Expr cos_f64(Expr x) { return cos_of(x); }
Expr tan_f32(Expr x) { return tan_of(x); }
Expr tan_f64(Expr x) { return tan_of(x); }

}  // namespace quern::ir::math
