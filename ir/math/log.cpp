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

Expr log_of(Expr x) {
  Decomposed d = decompose_any(x);
  Expr f = d.m - 1.0;  // exact
  return special_cases(x, log_sum(d.k, f, log_tail(f)));
}

/// The logarithm to another base: `unit` is log 2 in it, in parts whose first has exact products
/// with k, and log e is `factor`, a power of two, plus `rest`, so that the product of f with it is
/// exact in its leading term.
Expr log_to_base(Expr x, const double (&unit)[2], double factor, double rest) {
  Decomposed d = decompose_any(x);
  Expr f = d.m - 1.0;  // exact
  Pair lead = fast_two_sum(d.k * unit[0], f * factor);
  Expr tail = f * rest - (factor + rest) * log_tail(f);
  return special_cases(x, lead.hi + (lead.lo + (d.k * unit[1] + tail)));
}

constexpr double one[] = {1.0, 0.0};
}  // namespace

Expr log_f32(Expr x) { return log_of(x); }
Expr log_f64(Expr x) { return log_of(x); }
Expr log2_f32(Expr x) { return log_to_base(x, one, 1.0, table::log2_e - 1.0); }
Expr log2_f64(Expr x) { return log_to_base(x, one, 1.0, table::log2_e - 1.0); }
Expr log10_f32(Expr x) {
  return log_to_base(x, table::log10_2_single, 0.5, table::log10_e_less_half);
}
Expr log10_f64(Expr x) { return log_to_base(x, table::log10_2, 0.5, table::log10_e_less_half); }

// u = fl(1 + y) = 2^k m. Where k = 0 y itself is f; elsewhere f = m - 1 and what the sum lost
// counts by the derivative of the logarithm, 1 / u.

Expr log1p_of(Expr y, Expr lost, Expr doublings) {
  Pair u = two_sum(y, constant(y, y.type(), 1.0));
  Decomposed d = decompose(u.hi);
  Expr near = d.k == 0.0;
  Expr f = select(near, y, d.m - 1.0);
  Expr correction = select(near, lost, u.lo + lost) / u.hi;
  return log_sum(d.k + doublings, f, log_tail(f) - correction);
}

namespace {
Expr log1p_of(Expr x, double identity_below) {
  Expr zero = constant(x, x.type(), 0.0);
  Expr result = log1p_of(x, zero, zero);
  result = select(x == infinity, infinity, result);
  result = select(x == -1.0, -infinity, result);
  result = select((x < -1.0) | is_nan(x), not_a_number, result);
  return select(abs(x) < identity_below, x, result);
}
}  // namespace

Expr log1p_f32(Expr x) { return log1p_of(x, 0x1p-26); }
Expr log1p_f64(Expr x) { return log1p_of(x, 0x1p-55); }

}  // namespace quern::ir::math
