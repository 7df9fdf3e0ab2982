#pragma once
// Reductions of all elements of a field, of any rank, to one value. They return a Result: the
// conversion to the value waits.
#include "quern/algorithms/common.h"

namespace quern {

/// How contributions are combined.
struct Reduction {
  /// In a fixed order, so that float results have the same bits on every device and in every run
  /// (docs/semantics.md, section 5). Else in any order.
  bool deterministic = false;
};

namespace detail {

/// What numbers are added up in: integers and bool in 64 bits, floats in their own type.
template <class S>
using sum_scalar_t = std::conditional_t<
    std::is_floating_point_v<S>, S,
    std::conditional_t<std::is_unsigned_v<S> && !std::is_same_v<S, bool>, uint64_t, int64_t>>;
template <class A, class T>
struct SumType {
  static_assert(!is_structure<T>,
                "quern: structures have no arithmetic; reduce a member, x.member(&S::m), or give "
                "reduce an operator of your own");
  using type = rebind_t<T, A>;
};
template <class T>
struct SumType<void, T> : SumType<sum_scalar_t<scalar_t<T>>, T> {};
template <class T>
  requires is_structure<T>
struct SumType<void, T> : SumType<int, T> {};
template <class A, class T>
using sum_t = typename SumType<A, T>::type;

template <class T>
struct Number {
  static_assert(DeviceScalar<T> && !std::is_same_v<T, bool>,
                "quern: this algorithm takes a field of numbers");
  static constexpr bool ok = true;
};
template <class T>
struct Truth {
  static_assert(std::is_same_v<T, bool>,
                "quern: any, all and count take a field of bool; write the flags with a kernel");
  static constexpr bool ok = true;
};

/// `start` and each element, taken up by `take(variable, element)`.
template <class S, class T, int N, class F>
Result<S> fold(const Field<T, N>& x, S start, F, bool deterministic, const char* name, Loc loc) {
  begin_algorithm(name, x.object(), loc);
  const AlgorithmCall call(name, {read(x)}, loc);
  return kernel_of(
      [](bool fixed) {
        return Kernel{[fixed](Field<T, N> from, Val<S> first) {
                        Var<S> made = first;
                        all_of(from, fixed, [&](const auto& v, const auto&) { F{}(made, v); });
                        return made;
                      },
                      modes("reduce")};
      },
      deterministic)(x, start, loc);
}

/// Which of the least and the greatest.
struct Least {
  template <class T, class V>
  static void take(Var<T>& best, const V& v) {
    lang::atomic_min(best, v);
  }
};
struct Greatest {
  template <class T, class V>
  static void take(Var<T>& best, const V& v) {
    lang::atomic_max(best, v);
  }
};
/// What loses against every number: a NaN, or the other end of the integers.
template <class O, class T>
constexpr T loser() {
  if constexpr (std::is_floating_point_v<T>) {
    return T(__builtin_nan(""));
  } else {
    constexpr T least = std::is_signed_v<T> ? T(uint64_t(1) << (8 * sizeof(T) - 1)) : T(0);
    return std::is_same_v<O, Least> ? T(~least) : least;
  }
}

template <class O, class T, int N>
Result<T> extreme(const Field<T, N>& x, const char* name, Loc loc) {
  static_assert(Number<T>::ok);
  if (x.size(loc) == 0) refuse_empty(name, loc);
  return fold<T>(
      x, loser<O, T>(), [](auto& best, const auto& v) { O::take(best, v); }, false, name, loc);
}

template <class O, class T, int N>
auto extreme_index(const Field<T, N>& x, const char* name, Loc loc) {
  static_assert(Number<T>::ok);
  static_assert(N > 0, "quern: a field without axes has no indices");
  begin_algorithm(name, x.object(), loc);
  if (x.size(loc) == 0) refuse_empty(name, loc);
  const AlgorithmCall call(name, {read(x)}, loc);
  return kernel_of([](bool) {
    return Kernel{[](Field<T, N> from) {
                    using namespace lang;
                    constexpr int64_t nowhere = loser<Least, int64_t>();
                    Var<T> best = loser<O, T>();
                    all_of(from, false, [&](const auto& v, const auto&) { O::take(best, v); });
                    Var<int64_t> at = nowhere;
                    all_of(from, false, [&](const auto& v, const auto& index) {
                      atomic_min(at, select(v == best, number_of(from, index), nowhere));
                    });
                    return index_of(from, select(at == nowhere, 0, at));
                  },
                  modes("argmin")};
  })(x, loc);
}

/// One level of a tree: partial[c] is what the elements of chunk c make, from left to right.
template <class A, class O, class T, int N>
void combine_chunks(const Field<T, N>& x, const Field<A>& partial, bool checked, Loc loc) {
  kernel_of(
      [](bool on) {
        return Kernel{[](Field<T, N> from, Field<A> to, Val<int64_t> size) {
                        using namespace lang;
                        for (auto c : range(length_of(to))) {
                          Val<int64_t> lo = c * chunk_length;
                          nth(to, c) = combined<A, O>(from, lo, min(lo + chunk_length, size));
                        }
                      },
                      modes("reduce", on)};
      },
      checked)(x, partial, x.size(loc), loc);
}
/// init and all elements, from left to right.
template <class A, class O, class T, int N>
Result<A> combine(const Field<T, N>& x, const A& init, bool checked, Loc loc) {
  const int64_t size = x.size(loc);
  if (size > chunk_length) {
    Field<A> partial = temporary<A>(x.object(), chunks_of(size), loc);
    combine_chunks<A, O>(x, partial, checked, loc);
    return combine<A, O>(partial, init, checked, loc);
  }
  return kernel_of(
      [](bool on) {
        return Kernel{[](Field<T, N> from, Val<A> first, Val<int64_t> end) {
                        Var<A> made = first;
                        each_of(from, 0, end, [&](const auto& i, int) {
                          made = applied<O, A>(made, element_as<A>(from[i]));
                        });
                        return made;
                      },
                      modes("reduce", on)};
      },
      checked)(x, init, size, loc);
}

}  // namespace detail

/// The sum of all elements; 0 without any. Integers and bool are added up in 64 bits, floats in
/// their own type, many partial sums at a time; `sum<double>(x)` chooses another. Vectors and
/// matrices are added by component.
template <class A = void, class T, int N>
auto sum(const Field<T, N>& x, Reduction how = {}, Loc l = Loc::here()) {
  using S = detail::sum_t<A, T>;
  return detail::fold<S>(
      x, S{}, [](auto& made, const auto& v) { made += detail::element_as<S>(v); },
      how.deterministic, "sum", l);
}
/// The product of all elements; 1 without any. In the types of sum.
template <class A = void, class T, int N>
auto product(const Field<T, N>& x, Reduction how = {}, Loc l = Loc::here()) {
  static_assert(detail::Number<T>::ok);
  using S = detail::sum_t<A, T>;
  return detail::fold<S>(
      x, S(1), [](auto& made, const auto& v) { made *= detail::element_as<S>(v); },
      how.deterministic, "product", l);
}
/// The sum of x[i] · y[i] over two fields of one shape. In the types of sum, to which elements are
/// converted before they are multiplied. Throws Error for different shapes.
template <class A = void, class T, int N>
  requires(N > 0)
auto dot(const Field<T, N>& x, const Field<T, N>& y, Reduction how = {}, Loc l = Loc::here()) {
  static_assert(detail::Number<T>::ok);
  using S = detail::sum_t<A, T>;
  detail::begin_algorithm("dot", x.object(), l);
  detail::expect_same_shape("dot", x.object(), y.object(), l);
  const detail::AlgorithmCall call("dot", {detail::read(x), detail::read(y)}, l);
  return detail::kernel_of(
      [](bool fixed) {
        return Kernel{[fixed](Field<T, N> a, Field<T, N> b) {
                        Var<S> made;
                        detail::all_of(a, fixed, [&](const auto& v, const auto& i) {
                          made += detail::element_as<S>(v) *
                                  detail::element_as<S>(b[detail::counterpart(a, b, i)]);
                        });
                        return made;
                      },
                      detail::modes("dot")};
      },
      how.deterministic)(x, y, l);
}

/// The least and the greatest element. NaNs are skipped (the result is one if all are); -0 < +0.
/// Throws Error for a field without elements.
template <class T, int N>
Result<T> min(const Field<T, N>& x, Loc l = Loc::here()) {
  return detail::extreme<detail::Least>(x, "min", l);
}
template <class T, int N>
Result<T> max(const Field<T, N>& x, Loc l = Loc::here()) {
  return detail::extreme<detail::Greatest>(x, "max", l);
}
/// The index of the least, of the greatest element; of several equal ones the first in row-major
/// order. An int64_t, or a Vec<int64_t, N> for N axes. NaNs are skipped (the first index if all
/// elements are). Throws Error for a field without elements.
template <class T, int N>
auto argmin(const Field<T, N>& x, Loc l = Loc::here()) {
  return detail::extreme_index<detail::Least>(x, "argmin", l);
}
template <class T, int N>
auto argmax(const Field<T, N>& x, Loc l = Loc::here()) {
  return detail::extreme_index<detail::Greatest>(x, "argmax", l);
}

/// How many elements are true.
template <class T, int N>
Result<int64_t> count(const Field<T, N>& flags, Loc l = Loc::here()) {
  static_assert(detail::Truth<T>::ok);
  return sum(flags, {}, l);
}
/// Is any element true (false without elements)?
template <class T, int N>
Result<bool> any(const Field<T, N>& flags, Loc l = Loc::here()) {
  static_assert(detail::Truth<T>::ok);
  return detail::fold<bool>(
      flags, false, [](auto& made, const auto& v) { made |= v; }, false, "any", l);
}
/// Are all elements true (true without elements)?
template <class T, int N>
Result<bool> all(const Field<T, N>& flags, Loc l = Loc::here()) {
  static_assert(detail::Truth<T>::ok);
  return detail::fold<bool>(
      flags, true, [](auto& made, const auto& v) { made &= v; }, false, "all", l);
}

/// init and all elements in row-major order, combined by an associative operator of two device
/// values, as in `[](auto a, auto b) { return a * b % 1009; }`. It need not be commutative: what
/// comes earlier is always its left operand, as for a product of matrices. Numbers are converted to
/// the type of `init`, which is that of the result; structures are combined with their like. How
/// operands are grouped depends on the shape alone. The operator is checked where the caller's file
/// is compiled for debugging.
template <class A, class T, int N, class O>
auto reduce(const Field<T, N>& x, const A& init, O,
            detail::Source source = detail::Source::here(QUERN_CHECKED_HERE)) {
  static_assert(N > 0, "quern: a field without axes has one element: x.at({})");
  detail::expect_captureless<O>();
  detail::begin_algorithm("reduce", x.object(), source.loc);
  const detail::AlgorithmCall call("reduce", {detail::read(x)}, source.loc);
  using C = detail::canonical_t<A>;
  return detail::combine<C, O>(x, C(init), detail::is_checked({}, source.checked), source.loc);
}

}  // namespace quern
