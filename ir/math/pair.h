#pragma once
// Double-word arithmetic: a number as an unevaluated sum hi + lo of two floats with |lo| ≤
// ulp(hi)/2. Error-free transformations after Dekker (1971) and Knuth (TAOCP 2, 4.2.2), as in
// Muller et al., Handbook of Floating-Point Arithmetic, chapter 4. All are kept out of contraction.
#include "ir/math/expr.h"

namespace quern::ir::math {

struct Pair {
  Expr hi, lo;
};

/// a + b exactly.
inline Pair two_sum(Expr a, Expr b) {
  Uncontracted keep(a);
  Expr s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

/// a + b exactly where |a| ≥ |b|, or a = 0, or a is a multiple of ulp(b).
inline Pair fast_two_sum(Expr a, Expr b) {
  Uncontracted keep(a);
  Expr s = a + b;
  return {s, b - (s - a)};
}

/// The 26 leading bits of `a` and the rest (27 bits), or 12 and 12 in f32, by masking: cannot
/// overflow.
inline Pair halves(Expr a) {
  Uncontracted keep(a);
  Expr hi = float_of(bits(a) & (a.type() == Type::f64 ? 0xfffffffff8000000u : 0xfffff000u));
  return {hi, a - hi};
}

/// a · b exactly, as long as it stays above the subnormals.
inline Pair two_product(Expr a, Expr b) {
  Uncontracted keep(a);
  Expr p = a * b;
  return {p, fma(a, b, -p)};
}

inline Pair operator*(Pair a, Pair b) {
  Uncontracted keep(a.hi);
  Pair p = two_product(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

inline Pair operator*(Pair a, Expr b) {
  Uncontracted keep(a.hi);
  Pair p = two_product(a.hi, b);
  return fast_two_sum(p.hi, p.lo + a.lo * b);
}

/// a + b for |a| ≥ |b|.
inline Pair add_smaller(Pair a, Pair b) {
  Uncontracted keep(a.hi);
  Pair s = fast_two_sum(a.hi, b.hi);
  return fast_two_sum(s.hi, s.lo + (a.lo + b.lo));
}

}  // namespace quern::ir::math
