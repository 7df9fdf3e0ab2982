#include "ir/math/functions.h"
#include "ir/math/pair.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// f32: the product is exact in f64; the sum is rounded to odd (Boldo & Melquiond, IEEE Transactions
// on Computers 57(4), 2008), after which rounding to f32 equals rounding the exact value.
Expr fma_f32(Expr a, Expr b, Expr c) {
  Expr wa = convert(a, Type::f64), wb = convert(b, Type::f64), wc = convert(c, Type::f64);
  Uncontracted keep(a);
  Pair s = two_sum(wa * wb, wc);
  Expr u = bits(s.hi);
  // Where the sum was inexact and its last bit is even, the odd neighbour lies towards the error.
  // (Comparisons, since the error of an infinite sum is a NaN.)
  Expr up = select(s.hi > 0.0, s.lo > 0.0, s.lo < 0.0);
  Expr down = select(s.hi > 0.0, s.lo < 0.0, s.lo > 0.0);
  Expr even = (u & 1) == 0;
  u = u + convert(even & up, Type::u64) - convert(even & down, Type::u64);
  return convert(float_of(u), Type::f32);
}

// f64: the sum is formed from integers, as 128 bits with a sticky last bit, and rounded once.
namespace {
struct Wide {
  Expr hi, lo;  ///< u64 each
};

Expr sticky(Expr lost) { return convert(lost != 0, Type::u64); }

/// (value >> count) with what falls out collected in the last bit; any count ≥ 0.
Wide shift_right(Wide v, Expr count) {
  Expr zero = constant(count, Type::u64, 0);
  // by 64 twice, then by less than 64
  Expr one = count >= 64;
  Expr lost = select(one, v.lo, zero);
  v = {select(one, zero, v.hi), select(one, v.hi, v.lo)};
  Expr two = count >= 128;
  lost = lost | select(two, v.lo, zero);
  v.lo = select(two, zero, v.lo);
  Expr s = count & 63;
  lost = lost | ((v.lo << (63 - s)) << 1);
  Expr lo = (v.lo >> s) | ((v.hi << (63 - s)) << 1);
  return {v.hi >> s, lo | sticky(lost)};
}

Wide shift_left(Wide v, Expr s) { return {(v.hi << s) | ((v.lo >> (63 - s)) >> 1), v.lo << s}; }

/// Fraction with its leading bit at 2^52, and exponent such that |x| = fraction · 2^exponent.
struct Unpacked {
  Expr fraction, exponent;
};
Unpacked unpack(Expr x) {
  Expr ax = abs(x);
  Expr tiny = ax < 0x1p-1022;
  Expr u = bits(select(tiny, ax * 0x1p54, ax));
  Expr e = bitcast(u >> 52, Type::i64);
  Expr exponent = select(tiny, e - 54, e) - 1075;
  return {(u & 0x000fffffffffffffu) | 0x0010000000000000u, exponent};
}

Wide product(Expr a, Expr b) {
  Expr a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  Expr low = a0 * b0;
  Expr middle = a1 * b0 + (low >> 32);  // both below 2^53 + 2^32
  Expr other = a0 * b1 + (middle & 0xffffffffu);
  return {a1 * b1 + (middle >> 32) + (other >> 32), (other << 32) | (low & 0xffffffffu)};
}

Expr less(Wide a, Wide b) { return (a.hi < b.hi) | ((a.hi == b.hi) & (a.lo < b.lo)); }
Wide choose_wide(Expr c, Wide a, Wide b) { return {select(c, a.hi, b.hi), select(c, a.lo, b.lo)}; }
Expr unsigned_count(Expr e) { return bitcast(max(e, 0), Type::u64); }
}  // namespace

Expr fma_f64(Expr a, Expr b, Expr c) {
  Unpacked ua = unpack(a), ub = unpack(b), uc = unpack(c);
  Expr zero = constant(a, Type::u64, 0);

  // Product and addend with leading bits at 2^124 or 2^125 and at 2^125: the sum stays below 2^127.
  Wide p = shift_left(product(ua.fraction, ub.fraction), constant(a, Type::u64, 20));
  Expr ep = ua.exponent + ub.exponent - 20;
  Wide q{uc.fraction << 9, zero};
  Expr eq = uc.exponent - 73;
  // the smaller exponent gives way
  Expr distance = ep - eq;
  p = shift_right(p, unsigned_count(-distance));
  q = shift_right(q, unsigned_count(distance));
  Expr e = select(distance > 0, ep, eq);

  Expr sign_p = sign_of(a) ^ sign_of(b), sign_c = sign_of(c);
  Expr same = sign_p == sign_c;
  Expr low = p.lo + q.lo;
  Wide sum{p.hi + q.hi + convert(low < p.lo, Type::u64), low};
  Expr smaller = less(p, q);
  Wide large = choose_wide(smaller, q, p), small = choose_wide(smaller, p, q);
  Wide difference{large.hi - small.hi - convert(large.lo < small.lo, Type::u64),
                  large.lo - small.lo};
  Wide s = choose_wide(same, sum, difference);
  Expr sign = select(smaller, sign_c, sign_p);
  Expr cancelled = (s.hi | s.lo) == 0;

  // leading bit to 2^127 by halving steps
  for (int step : {64, 32, 16, 8, 4, 2, 1}) {
    Expr empty = step == 64 ? s.hi == 0 : (s.hi >> (64 - step)) == 0;
    Wide moved = step == 64 ? Wide{s.lo, zero} : shift_left(s, constant(a, Type::u64, step));
    s = choose_wide(empty, moved, s);
    e = select(empty, e - step, e);
  }

  // The value is s·2^e, 2^127 ≤ s < 2^128; rounded to 53 bits, or fewer below the normal numbers.
  Expr biased = e + (127 + 1023);
  Expr below = unsigned_count(1 - biased);
  Expr top = s.hi | sticky(s.lo);
  Expr drop = select(below < 52, below, constant(a, Type::u64, 52)) + 11;  // 11 … 63
  Expr kept = top >> drop;
  Expr rest = top << (64 - drop);
  Expr half = constant(a, Type::u64, sign_f64);
  // Deeper than the last place, nothing is kept: one place deeper `top` is what is dropped, and
  // further down that is less than half.
  Expr deep = below > 52;
  kept = select(deep, zero, kept);
  rest = select(deep, select(below == 53, top, constant(a, Type::u64, 1)), rest);
  Expr round = (rest > half) | ((rest == half) & ((kept & 1) != 0));
  kept = kept + convert(round, Type::u64);
  Expr magnitude = (unsigned_count(biased - 1) << 52) + kept;  // a carry raises the exponent
  Expr inf = constant(a, Type::u64, uint64_t(0x7ff) << 52);
  magnitude = select(magnitude < inf, magnitude, inf);
  Expr result = float_of(magnitude | sign);

  // Where a factor is zero, infinite or NaN plain arithmetic is right; a zero addend must not
  // change the sign of a product that vanishes, nor an infinite one meet a product that overflows.
  Expr factors_finite = (abs(a) < infinity) & (abs(b) < infinity);
  Expr product_zero = (a == 0.0) | (b == 0.0);
  Uncontracted keep(a);
  Expr plain = a * b + c;
  result = select(cancelled, 0.0, result);
  result = select(abs(c) < infinity, result, c);  // infinite or NaN
  result = select(c == 0.0, a * b, result);
  return select(factors_finite & !product_zero, result, plain);
}

// A quotient or root of f32 numbers never lies so near the middle of two f32 numbers that rounding
// it to f64 first would matter (Figueroa, SIGNUM Newsletter 30(3), 1995).
Expr div_f32(Expr a, Expr b) {
  return convert(convert(a, Type::f64) / convert(b, Type::f64), Type::f32);
}
Expr sqrt_f32(Expr a) { return convert(sqrt(convert(a, Type::f64)), Type::f32); }

}  // namespace quern::ir::math
