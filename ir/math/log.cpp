#include "ir/math/functions.h"
#include "ir/math/log_parts.h"

namespace quern::ir::math {

// log x = k ln 2 + log(1 + f) with 1 + f in [√½, √2).

namespace {
Expr special_cases(Expr x, Expr result) {
  result = select(x == infinity, infinity, result);
  result = select(x == 0.0, -infinity, result);
  return select((x < 0.0) | is_nan(x), not_a_number, result);
}

/// `of` of x's parts; what is no positive normal number is rare.
template <class F>
Expr by_parts(Expr x, F&& of) {
  auto rare = [&] { return special_cases(x, of(decompose_any(x))); };
  return rarely_else(!is_positive_normal(x), rare, [&] { return of(decompose(x)); });
}

Expr log_of(Expr x) {
  return by_parts(
      x, [&](Decomposed d) { return log_sum(d.k, d.m - 1.0, constant(x, x.type(), 0.0)); });
}

/// The logarithm to another base: `unit` is log 2 in it, in parts whose first has exact products
/// with k, and log e is `factor`, a power of two, plus `rest`, so that the product of f with it is
/// exact in its leading term.
Expr log_to_base(Expr x, const double (&unit)[2], double factor, double rest) {
  return by_parts(x, [&](Decomposed d) {
    Expr f = d.m - 1.0;  // exact
    Expr tail = f * rest - (factor + rest) * log_tail(f);
    return d.k * unit[0] + (f * factor + (d.k * unit[1] + tail));
  });
}

/// In f32 one polynomial gives log(1 + f) / f in the base, less `factor`, whose product with f is
/// exact.
template <size_t N>
Expr log_to_base_f32(Expr x, const double (&unit)[2], double factor, const double (&rest)[N]) {
  return by_parts(x, [&](Decomposed d) {
    Expr f = d.m - 1.0;  // exact
    Expr tail = f * polynomial(f, rest);
    if (unit[1] != 0) tail = tail + d.k * unit[1];
    return d.k * unit[0] + (f * factor + tail);
  });
}

constexpr double one[] = {1.0, 0.0};
}  // namespace

Expr log_f32(Expr x) { return log_of(x); }
Expr log_f64(Expr x) { return log_of(x); }
Expr log2_f32(Expr x) { return log_to_base_f32(x, one, 1.0, table::log2_single); }
Expr log2_f64(Expr x) { return log_to_base(x, one, 1.0, table::log2_e - 1.0); }
Expr log10_f32(Expr x) {
  return log_to_base_f32(x, table::log10_2_single, 0.5, table::log10_single);
}
Expr log10_f64(Expr x) { return log_to_base(x, table::log10_2, 0.5, table::log10_e_less_half); }

// u = fl(1 + y) = 2^k m, f = m - 1. What the sum lost counts by the derivative of the logarithm,
// 1 / u = 2^-k / (1 + f), of which a few digits suffice.

Expr log1p_of(Expr y, Expr lost) {
  Pair u = two_sum(y, constant(y, y.type(), 1.0));
  Decomposed d = decompose(u.hi);
  Expr f = d.m - 1.0;                                                                  // exact
  Expr inverse = float_of(bits(d.m) - bits(u.hi) + bits(constant(y, y.type(), 1.0)));  // 2^-k
  return log_sum(d.k, f, (u.lo + lost) * (inverse * (1.0 - f * (1.0 - f))));
}

namespace {
Expr log1p_of(Expr x) {
  const double large = x.type() == Type::f64 ? 0x1p1000 : 0x1p120;
  auto usual = [&] { return log1p_of(x, constant(x, x.type(), 0.0)); };
  auto rare = [&] {
    Expr result = select(x == -1.0, -infinity, log_of_twice(0.5 * x));
    result = select(x == infinity, infinity, result);
    return select((x < -1.0) | is_nan(x), not_a_number, result);
  };
  Expr result = rarely_else(!((x > -1.0) & (x < large)), rare, usual);
  return float_of(bits(result) | sign_of(x));  // of a zero
}
}  // namespace

Expr log1p_f32(Expr x) { return log1p_of(x); }
Expr log1p_f64(Expr x) { return log1p_of(x); }

}  // namespace quern::ir::math
