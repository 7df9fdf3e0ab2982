// The derivatives of inverses and solutions of linear systems (Giles, An extended collection of
// matrix derivative results for forward and reverse mode algorithmic differentiation, 2008,
// sections 2.2.3 and 2.3.1).
#include "autodiff/rules/library.h"
#include "autodiff/rules/parts.h"
#include "quern/matrix.h"

namespace quern::autodiff {

namespace {

template <class T, int N>
Wide<Square<T, N>> push_inverse(Square<T, N>, Square<T, N> b, Wide<Square<T, N>> da) {
  const Wide<Square<T, N>> inverse = wide(b);
  return -(inverse * da * inverse);
}
template <class T, int N>
Wide<Square<T, N>> pull_inverse(Square<T, N>, Square<T, N> b, Wide<Square<T, N>> db) {
  const Wide<Square<T, N>> transposed = transpose(wide(b));
  return -(transposed * db * transposed);
}

/// X: a vector, or a matrix.
template <class T, int N, class X>
Wide<X> push_solve(Square<T, N> a, X, X x, Wide<Square<T, N>> da, Wide<X> db) {
  return solve(wide(a), db - da * wide(x));
}
template <class T, int N, class X>
auto pull_solve(Square<T, N> a, X, X x, Wide<X> dx) {
  const Wide<X> db = solve(transpose(wide(a)), dx);
  const Wide<X> solution = wide(x);
  const Wide<Square<T, N>> da = detail::matrix_from<N, N>([&](int r, int c) {
    if constexpr (detail::VectorLike<X>)
      return -(db[r] * solution[c]);
    else
      return -detail::sum_of<detail::Traits<detail::elem_t<X>>::columns>(
          [&](int k) { return db(r, k) * solution(c, k); });
  });
  return lang::result(da, db);
}

template <class T, int N, class X>
RecordedRule solve_of(Direction direction) {
  return record(direction, push_solve<T, N, X>, pull_solve<T, N, X>);
}

}  // namespace

RecordedRule inverse_rule(const ir::Function& f, Direction direction) {
  return for_any(f, f.body->args.size(), [&]<class T, int N>() -> RecordedRule {
    return record(direction, push_inverse<T, N>, pull_inverse<T, N>);
  });
}

RecordedRule solve_rule(const ir::Function& f, Direction direction) {
  return for_any(f, f.body->args.size() - f.results.size(), [&]<class T, int N>() -> RecordedRule {
    switch (f.results.size() / size_t(N)) {
      case 1: return solve_of<T, N, Val<Vec<T, N>>>(direction);
      case 2: return solve_of<T, N, Val<Mat<T, N, 2>>>(direction);
      case 3: return solve_of<T, N, Val<Mat<T, N, 3>>>(direction);
      case 4: return solve_of<T, N, Val<Mat<T, N, 4>>>(direction);
      default: return {};
    }
  });
}

}  // namespace quern::autodiff
