// The derivative of linear interpolation, a + f (b - a): also where f is 0, in f.
#include "autodiff/rules/library.h"
#include "quern/quern.h"

namespace quern::autodiff {

namespace {

/// t (b - a), and 0 where t is, whatever a and b are.
template <class T>
Val<T> slope(Val<T> t, Val<T> a, Val<T> b) {
  const Val<T> product = t * (b - a);
  return select(t == T(0) && product != product, T(0), product);
}

template <class T>
Val<T> push_lerp(Val<T> a, Val<T> b, Val<T> f, Val<T>, Val<T> da, Val<T> db, Val<T> df) {
  return da + f * (db - da) + slope<T>(df, a, b);
}
template <class T>
auto pull_lerp(Val<T> a, Val<T> b, Val<T> f, Val<T>, Val<T> dy) {
  const Val<T> of_b = f * dy;
  const Val<T> of_a = dy - of_b;
  return lang::result(of_a, of_b, slope<T>(dy, a, b));
}

}  // namespace

RecordedRule lerp_rule(const ir::Function& f, Direction direction) {
  return f.results[0] == ir::Type::f64 ? record(direction, push_lerp<double>, pull_lerp<double>)
                                       : record(direction, push_lerp<float>, pull_lerp<float>);
}

}  // namespace quern::autodiff
