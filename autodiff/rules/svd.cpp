// The derivative of the decomposition by singular values a = u · diag(s) · vᵀ.
//
// With P = uᵀ ȧ v: ṡ is the diagonal of P, and u̇ = u·Ω, v̇ = v·Φ with antisymmetric Ω and Φ, of
// which P = Ω·diag(s) - diag(s)·Φ off the diagonal (Papadopoulo & Lourakis, Estimating the Jacobian
// of the singular value decomposition, ECCV 2000). Instead of both from s_i² - s_j² their sum and
// difference are solved for: Ω + Φ from s_j - s_i, and Ω - Φ, which turns u·vᵀ, from s_i + s_j; so
// that stays right where singular values are equal and u and v themselves do not vary smoothly.
#include "autodiff/rules/library.h"
#include "autodiff/rules/parts.h"
#include "quern/decompose.h"

namespace quern::autodiff {

namespace {

template <class T, int N>
using Values = Val<Vec<T, N>>;

template <class T, int N>
auto push(Square<T, N>, Square<T, N> u, Values<T, N> s, Square<T, N> v, Square<T, N> da) {
  const Square<T, N> p = transpose(u) * da * v;
  const auto turn = [&](int i, int j, int sign) {
    const Val<T> sum = over_gap<T>(p(i, j) + p(j, i), s[i], s[j], s[0]);
    const Val<T> difference = ratio<T>(p(i, j) - p(j, i), s[i] + s[j]);
    return sign > 0 ? T(0.5) * (sum + difference) : T(0.5) * (sum - difference);
  };
  const Square<T, N> of_u = antisymmetric<T, N>([&](int i, int j) { return turn(i, j, 1); });
  const Square<T, N> of_v = antisymmetric<T, N>([&](int i, int j) { return turn(i, j, -1); });
  const Square<T, N> du = u * of_u, dv = v * of_v;
  const Values<T, N> ds = detail::vector_from<N>([&](int k) { return p(k, k); });
  return lang::result(du, ds, dv);
}

template <class T, int N>
Square<T, N> pull(Square<T, N>, Square<T, N> u, Values<T, N> s, Square<T, N> v, Square<T, N> du,
                  Values<T, N> ds, Square<T, N> dv) {
  const Square<T, N> of_u = transpose(u) * du, of_v = transpose(v) * dv;
  const Square<T, N> p = detail::matrix_from<N, N>([&](int r, int c) {
    if (r == c) return Val<T>(ds[r]);
    const int i = std::min(r, c), j = std::max(r, c);
    const Val<T> a = of_u(i, j) - of_u(j, i), b = of_v(i, j) - of_v(j, i);
    const Val<T> sum = over_gap<T>(a + b, s[i], s[j], s[0]);
    const Val<T> difference = ratio<T>(a - b, s[i] + s[j]);
    return r < c ? T(0.5) * (sum + difference) : T(0.5) * (sum - difference);
  });
  return u * p * transpose(v);
}

}  // namespace

RecordedRule svd_rule(const ir::Function& f, Direction direction) {
  return for_decomposed(f, [&]<class T, int N>() -> RecordedRule {
    return record(direction, push<T, N>, pull<T, N>);
  });
}

}  // namespace quern::autodiff
