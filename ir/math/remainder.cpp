#include "ir/math/functions.h"
#include "ir/math/parts.h"

namespace quern::ir::math {

// x - q·y is exact where q = trunc(x / y) has 53 bits: it is a multiple of the last place of y and
// smaller than y (Sterbenz; Muller et al., Handbook, 4.2). A rounded quotient may be one too large.
// Where the quotient has more bits x is taken modulo multiples y·2^k first, 50 bits at a time.

namespace {
/// r modulo s for r / s < 2^52.
Expr once(Expr r, Expr s) {
  Expr q = unary(Op::trunc, r / s);
  Expr rest = fma(-q, s, r);
  return select(rest < 0.0, rest + s, rest);
}

Expr exponent(Expr x) { return bitcast(bits(x) >> 52, Type::i64) - 1023; }

/// a modulo b for finite a ≥ 0, b > 0 of any ratio.
Expr in_steps(Expr a, Expr b) {
  Expr tiny = b < 0x1p-1022;
  Expr lowest = exponent(select(tiny, b * 0x1p54, b)) - select(tiny, 54, constant(b, Type::i64, 0));
  Builder& builder = a.w->builder;
  auto integer = [&](int64_t n) { return builder.integer(Type::i32, n); };
  constexpr int rounds = 44;  // (1024 + 1074) / 49 and one
  Inst* loop = builder.loop(integer(0), integer(rounds), integer(1), {{a.v}});
  builder.at_end(loop->region(0));
  Expr r{a.w, loop->region(0)->arg(1)};
  Expr over = exponent(r) - lowest - 51;
  Expr k = select(over > 0, select(over < 2046, over, 2046), 0);  // both halves of 2^k are finite
  Expr half = k >> 1;
  Expr rest = once(r, b * power_of_two(half) * power_of_two(k - half));
  builder.yield({rest.v});
  builder.after(loop);
  return {a.w, loop->result(0)};
}

Expr positive_fmod(Expr a, Expr b) {
  auto rare = [&] { return std::vector{in_steps(a, b)}; };
  auto usual = [&] { return std::vector{once(a, b)}; };
  return choose_rarely((a >= b * 0x1p50) & (a < infinity) & (b > 0.0), rare, usual)[0];
}

Expr with_special_cases(Expr x, Expr y, Expr magnitude) {
  Expr ax = abs(x), ay = abs(y);
  Expr r = select(ax < ay, ax, magnitude);
  Expr undefined = (!(ax < infinity)) | (ay == 0.0) | is_nan(y);
  return select(undefined, not_a_number, flip_sign(r, sign_of(x)));
}
}  // namespace

Expr fmod_f64(Expr x, Expr y) { return with_special_cases(x, y, positive_fmod(abs(x), abs(y))); }

// With p = |y|: x modulo 2p, then at most two times less p, where that brings it nearer to zero,
// the even quotient at a tie. All differences are exact (Sterbenz).

Expr remainder_f64(Expr x, Expr y) {
  Expr p = abs(y), ax = abs(x);
  Expr large = p >= 0x1p1023;  // 2p overflows, and x is below it
  Expr doubled = select(large, p, 2.0 * p);
  Expr below = large | (ax < doubled);
  Expr r = select(below, ax, positive_fmod(ax, doubled));
  Expr first = r > p - r;
  Expr r1 = select(first, r - p, r);
  Expr second = first & (r1 >= p - r1);
  Expr r2 = select(second, r1 - p, r1);
  Expr undefined = (!(ax < infinity)) | (p == 0.0) | is_nan(y);
  Expr near = select(p == infinity, ax, r2);
  return select(undefined, not_a_number, flip_sign(near, sign_of(x)));
}

// The result of f32 operands is a number of f32.

Expr fmod_f32(Expr x, Expr y) {
  return convert(fmod_f64(convert(x, Type::f64), convert(y, Type::f64)), Type::f32);
}
Expr remainder_f32(Expr x, Expr y) {
  return convert(remainder_f64(convert(x, Type::f64), convert(y, Type::f64)), Type::f32);
}

}  // namespace quern::ir::math
