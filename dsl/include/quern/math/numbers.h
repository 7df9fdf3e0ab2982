#pragma once
// What quaternions and complex numbers have in common: structures of floats of one type that add
// and scale by part. Each function is written once, for operands of the host and of the device; a
// mix of both is recorded. Operators have no room for a line: they take the one recorded last.
#include "quern/math/elementary.h"
#include "quern/math/linear.h"

namespace quern {
namespace detail {

/// A kind of number Q specialises it:
///   using part = T;                       the type of its parts
///   each(f, a, b, …)                      the number of f(a's part, b's part, …)
///   equal(a, b)                           are all parts equal?
template <class Q>
struct NumberOf {
  using part = void;
};
template <class A>
using part_t = typename NumberOf<elem_t<A>>::part;

template <class A>
concept NumberLike = Operand<A> && !std::is_void_v<part_t<A>>;
template <class A, class B>
concept SameNumbers = NumberLike<A> && NumberLike<B> && std::is_same_v<elem_t<A>, elem_t<B>>;
template <class A>
concept ScalarLike = Uniform<A> && is_scalar<elem_t<A>>;

/// The Q of these parts: recorded where one of them is.
template <class Q, Operand... S>
constexpr auto number(const S&... parts) {
  using T = typename NumberOf<Q>::part;
  static_assert(std::is_floating_point_v<T>, "quern: the parts of a number are float or double");
  if constexpr ((Device<S> || ...))
    return Val<Q>(joined<Q>(Arg<T>(parts, Loc{}).ids...));
  else
    return Q{T(parts)...};
}
/// A scalar beside the number A: of the host in the type of its parts.
template <class A, ScalarLike S>
constexpr auto beside(const S& s) {
  if constexpr (Host<S>)
    return part_t<A>(s);
  else
    return once(s);
}
/// The number of f of the parts.
template <class F, class A, class... B>
constexpr auto by_part(F f, const A& a, const B&... b) {
  return NumberOf<elem_t<A>>::each(f, once(a), once(b)...);
}

}  // namespace detail

template <class A, class B>
  requires detail::SameNumbers<A, B>
constexpr auto operator+(const A& a, const B& b) {
  [[maybe_unused]] detail::Here<A, B> here(Loc{});
  return detail::by_part([](const auto& p, const auto& q) { return p + q; }, a, b);
}
template <class A, class B>
  requires detail::SameNumbers<A, B>
constexpr auto operator-(const A& a, const B& b) {
  [[maybe_unused]] detail::Here<A, B> here(Loc{});
  return detail::by_part([](const auto& p, const auto& q) { return p - q; }, a, b);
}
template <detail::NumberLike A>
constexpr auto operator-(const A& a) {
  [[maybe_unused]] detail::Here<A> here(Loc{});
  return detail::by_part([](const auto& p) { return -p; }, a);
}
template <detail::NumberLike A, detail::ScalarLike S>
constexpr auto operator*(const A& a, const S& s) {
  [[maybe_unused]] detail::Here<A, S> here(Loc{});
  auto k = detail::beside<A>(s);
  return detail::by_part([&](const auto& p) { return p * k; }, a);
}
template <detail::ScalarLike S, detail::NumberLike A>
constexpr auto operator*(const S& s, const A& a) {
  return a * s;
}
template <detail::NumberLike A, detail::ScalarLike S>
constexpr auto operator/(const A& a, const S& s) {
  [[maybe_unused]] detail::Here<A, S> here(Loc{});
  auto k = detail::beside<A>(s);
  return detail::by_part([&](const auto& p) { return p / k; }, a);
}
template <class A, class B>
  requires detail::SameNumbers<A, B>
constexpr auto operator==(const A& a, const B& b) {
  [[maybe_unused]] detail::Here<A, B> here(Loc{});
  return detail::NumberOf<detail::elem_t<A>>::equal(detail::once(a), detail::once(b));
}
template <class A, class B>
  requires detail::SameNumbers<A, B>
constexpr auto operator!=(const A& a, const B& b) {
  return !(a == b);
}

}  // namespace quern
