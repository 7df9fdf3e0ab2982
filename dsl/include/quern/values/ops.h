#pragma once
// Operators on device values: what they yield, and how the user's line gets to the recorder.
#include "quern/values/convert.h"

namespace quern {
namespace detail {

enum class Rule : uint8_t {
  arithmetic,
  product,
  division,
  remainder,
  bits,
  shift,
  equality,
  order
};

/// A matrix beside a vector or matrix multiplies as in linear algebra; a vector is a row or column.
template <class A, class B>
struct LinearProduct {
  static constexpr bool applies = (is_matrix<A> || is_matrix<B>) && !is_scalar<A> && !is_scalar<B>;
  static constexpr int rows = is_matrix<A> ? Traits<A>::rows : 1;
  static constexpr int inner = is_matrix<A> ? Traits<A>::columns : count_of<A>;
  static constexpr int columns = is_matrix<B> ? Traits<B>::columns : 1;
  static constexpr bool fits = inner == Traits<B>::rows;
  template <class S>
  using type = std::conditional_t<
      is_matrix<A> && is_matrix<B>,
      Mat<S, applies ? Traits<A>::rows : 2, applies && is_matrix<B> ? columns : 2>,
      Vec<S, applies ? (is_matrix<A> ? rows : columns) : 2>>;
};

/// What an operator of this rule does with operands of host types A and B.
template <Rule K, class A, class B>
struct Outcome {
  using SA = scalar_t<A>;
  using SB = scalar_t<B>;
  static constexpr bool both_bool = std::is_same_v<SA, bool> && std::is_same_v<SB, bool>;
  static constexpr bool comparison = K == Rule::equality || K == Rule::order;
  static constexpr bool linear = K == Rule::product && LinearProduct<A, B>::applies;
  /// Of matrices, element by element, there are sums, differences and comparisons; a scalar scales.
  static constexpr bool elements_ok =
      linear || !(is_matrix<A> || is_matrix<B>) ||
      (K == Rule::arithmetic
           ? same_shape<A, B>
           : comparison || K == Rule::product || (K == Rule::division && is_scalar<B>));
  static constexpr bool shape_ok =
      linear ? LinearProduct<A, B>::fits : is_scalar<A> || is_scalar<B> || same_shape<A, B>;
  static constexpr bool integers = K == Rule::bits || K == Rule::shift || K == Rule::remainder;
  static constexpr bool class_ok =
      (!integers || (std::is_integral_v<SA> && std::is_integral_v<SB>)) && elements_ok;
  static constexpr bool defined = shape_ok && class_ok;
  using common =
      std::conditional_t<K == Rule::shift, promoted_t<SA>,
                         std::conditional_t<both_bool && (K == Rule::bits || K == Rule::equality),
                                            bool, common_t<SA, SB>>>;
  /// Would C++'s rule turn a negative operand into a large one, and would the result tell?
  static constexpr bool signs_ok =
      !(comparison || K == Rule::division || K == Rule::remainder) || !std::is_unsigned_v<common> ||
      !(std::is_signed_v<promoted_t<SA>> || std::is_signed_v<promoted_t<SB>>) || both_bool;
  static constexpr bool ok = defined && signs_ok;
  using shape = std::conditional_t<is_scalar<A>, B, A>;
  static auto outcome() {
    if constexpr (linear && defined)
      return std::type_identity<typename LinearProduct<A, B>::template type<common>>{};
    else
      return std::type_identity<rebind_t<std::conditional_t<defined, shape, A>,
                                         std::conditional_t<comparison, bool, common>>>{};
  }
  using type = typename decltype(outcome())::type;
};

template <class R>
struct Judge {
  static_assert(R::defined,
                "quern: no such operation on these operand types (see [with T = ..., U = ...] "
                "above)");
  static_assert(R::signs_ok || !R::defined,
                "quern: an integer that may be negative meets an unsigned one here; cast one side");
  static constexpr bool ok = R::ok;
};

template <class T>
Val<T> value(Ids<T> ids) {
  return Val<T>(ids);
}
template <class T>
Val<T> value(Id id) {
  return Val<T>(Ids<T>{{id}});
}

template <class R, class A, class B>
Val<typename R::type> apply(Op op, const Ids<A>& a, const Ids<B>& b, Loc loc) {
  Ids<typename R::type> out;
  if constexpr (R::linear)
    product(scalar_of<typename R::common>(), a.v, b.v, LinearProduct<A, B>::rows,
            LinearProduct<A, B>::inner, LinearProduct<A, B>::columns, out.v, loc);
  else
    binary(op, scalar_of<typename R::common>(), a.v, count_of<A>, b.v, count_of<B>, out.v, loc);
  return value<typename R::type>(out);
}

/// A device operand on the left.
template <Rule K, class T, Operand U>
[[gnu::cold, gnu::noinline]] auto bin(Op op, const At<T>& a, U&& b) {
  using B = operand_t<T, U>;
  using R = Outcome<K, T, B>;
  if constexpr (Judge<R>::ok)
    return apply<R, T, B>(op, a.ids, operand_ids<scalar_t<B>>(std::forward<U>(b), a.loc), a.loc);
  else
    return value<typename R::type>(Ids<typename R::type>{});
}
/// A host operand on the left.
template <Rule K, class T, Operand U>
[[gnu::cold, gnu::noinline]] auto nib(Op op, const U& a, const At<T>& b) {
  using A = operand_t<T, U>;
  using R = Outcome<K, A, T>;
  if constexpr (Judge<R>::ok)
    return apply<R, A, T>(op, operand_ids<scalar_t<A>>(a, b.loc), b.ids, b.loc);
  else
    return value<typename R::type>(Ids<typename R::type>{});
}
/// Negation and complement, in the promoted type.
template <class T>
[[gnu::cold, gnu::noinline]] auto un(Op op, const At<T>& a) {
  using P = promoted_t<scalar_t<T>>;
  Ids<rebind_t<T, P>> out;
  for (int k = 0; k < count_of<T>; k++)
    out.v[k] = unary(op, convert(a.ids.v[k], scalar_of<P>(), a.loc), a.loc);
  return value<rebind_t<T, P>>(out);
}

template <class T, class B>
struct Dependent {
  using type = B;
};

template <class S>
concept HostIndexType = std::is_same_v<S, std::size_t> || std::is_same_v<S, std::ptrdiff_t>;

/// In a base, not in a macro: a macro's expansion doubles the length of an error.
template <class T>
struct Common {
  using quern_elem = T;
  template <class U = T>
  explicit operator bool() const {
    static_assert(never<U>,
                  "quern: a device value has no value while recording, so it cannot steer the "
                  "host's `if`, `while`, `for`, `?:`; write If (c) {...}, While (c) {...}, "
                  "select(c, a, b)");
    return false;
  }
  template <HostNumber S>
    requires(!std::is_same_v<S, bool>)
  explicit operator S() const {
    static_assert(never<S>,
                  "quern: a device value has no value while recording, so no number of the host "
                  "is made of it; write cast<float>(value) for a conversion on the device");
    return {};
  }
#ifndef __clang__
  /// An index of the host's containers and arrays. Only g++ leaves conversion templates out when it
  /// looks for built-in operators; elsewhere `i + 1` would be the host's.
  template <HostIndexType S>
    requires(Integer<T> && scalar_of<S>() != scalar_of<T>())
  operator S() const {
    static_assert(never<S>,
                  "quern: a device value indexes no array or container of the host's; write a "
                  "Field, or a Var<Array<T, N>> for a few constants");
    return {};
  }
#endif
};

#define QUERN_BINARY(symbol, rule, op)                        \
  template <Uniform U>                                        \
  friend auto operator symbol(At<T> a, U&& b) {               \
    return bin<Rule::rule, T>(Op::op, a, std::forward<U>(b)); \
  }                                                           \
  template <HostUniform U>                                    \
  friend auto operator symbol(const U& a, At<T> b) {          \
    return nib<Rule::rule, T, U>(Op::op, a, b);               \
  }
// C++20 also tries `b == a`: two device operands of one type need an exact overload.
#define QUERN_EQUALITY(symbol, op)                                                  \
  friend auto operator symbol(At<T> a, At<T> b) {                                   \
    return apply<Outcome<Rule::equality, T, T>, T, T>(Op::op, a.ids, b.ids, a.loc); \
  }                                                                                 \
  template <HostUniform U>                                                          \
  friend auto operator symbol(At<T> a, const U& b) {                                \
    return bin<Rule::equality, T>(Op::op, a, b);                                    \
  }                                                                                 \
  template <HostUniform U>                                                          \
  friend auto operator symbol(const U& a, At<T> b) {                                \
    return nib<Rule::equality, T, U>(Op::op, a, b);                                 \
  }

/// The operators shared by Val, Var and Elem.
template <class T, Shape = Traits<T>::shape>
struct Ops : Common<T> {
  QUERN_BINARY(+, arithmetic, add)
  QUERN_BINARY(-, arithmetic, sub)
  QUERN_BINARY(*, product, mul)
  QUERN_BINARY(/, division, div)
  QUERN_BINARY(%, remainder, rem)
  QUERN_BINARY(&, bits, bit_and)
  QUERN_BINARY(|, bits, bit_or)
  QUERN_BINARY(^, bits, bit_xor)
  QUERN_BINARY(<<, shift, shl)
  QUERN_BINARY(>>, shift, shr)
  QUERN_BINARY(<, order, lt)
  QUERN_BINARY(>, order, gt)
  QUERN_BINARY(<=, order, le)
  QUERN_BINARY(>=, order, ge)
  QUERN_EQUALITY(==, eq)
  QUERN_EQUALITY(!=, ne)
  friend auto operator-(At<T> a) { return un<T>(Op::neg, a); }
  friend auto operator+(At<T> a) { return value<T>(a.ids) + 0; }
  friend auto operator~(At<T> a) {
    static_assert(std::is_integral_v<scalar_t<T>>, "quern: ~ takes an integer");
    return un<T>(Op::bit_not, a);
  }
};

/// A structure has no operators.
template <class T>
struct Ops<T, Shape::structure> : Common<T> {};

/// A bool adds guards. A template, so that Val<bool> may be incomplete here.
template <class T>
struct BoolOps : Common<T> {
  QUERN_BINARY(+, arithmetic, add)
  QUERN_BINARY(-, arithmetic, sub)
  QUERN_BINARY(*, product, mul)
  QUERN_BINARY(&, bits, bit_and)
  QUERN_BINARY(|, bits, bit_or)
  QUERN_BINARY(^, bits, bit_xor)
  QUERN_EQUALITY(==, eq)
  QUERN_EQUALITY(!=, ne)
  // Left: At remembers where recording stood, so all that the right operand records is known.
  // Right: the exact type, so that the built-in && never ties.
  template <DeviceBool U>
  friend auto operator&&(At<T> a, U&& b) {
    return value<typename Dependent<U, T>::type>(guard(
        true, a.ids.v[0], std::forward<U>(b).quern_ids(a.loc).v[0], a.recorded.position, a.loc));
  }
  template <DeviceBool U>
  friend auto operator||(At<T> a, U&& b) {
    return value<typename Dependent<U, T>::type>(guard(
        false, a.ids.v[0], std::forward<U>(b).quern_ids(a.loc).v[0], a.recorded.position, a.loc));
  }
};
template <>
struct Ops<bool> : BoolOps<bool> {};
#undef QUERN_BINARY
#undef QUERN_EQUALITY

template <class U>
void refuse_host_target() {
  static_assert(never<U>,
                "quern: a variable of the host's cannot change while a kernel runs; declare it "
                "inside the kernel, as in Var<float> s = 0, and return it");
}

template <class A, class B>
concept MixedDevice =
    Device<A> && Device<B> && Uniform<A> && Uniform<B> && !std::is_same_v<elem_t<A>, elem_t<B>>;

}  // namespace detail

// Of the exact type, for the built-in ! not to tie; pure, so it takes the line recorded last.
template <detail::DeviceBool A>
auto operator!(A&& a) {
  return detail::value<detail::elem_t<A>>(
      detail::unary(detail::Op::bit_not, std::forward<A>(a).quern_ids(Loc{}).v[0], Loc{}));
}

// A host bool beside a device one: the host decides at once.
template <detail::DeviceBool A, class B = Val<detail::elem_t<A>>>
B operator&&(const A& a, bool b) {
  return b ? B(a) : B(false);
}
template <detail::DeviceBool A, class B = Val<detail::elem_t<A>>>
B operator&&(bool a, const A& b) {
  return a ? B(b) : B(false);
}
template <detail::DeviceBool A, class B = Val<detail::elem_t<A>>>
B operator||(const A& a, bool b) {
  return b ? B(true) : B(a);
}
template <detail::DeviceBool A, class B = Val<detail::elem_t<A>>>
B operator||(bool a, const A& b) {
  return a ? B(true) : B(b);
}

template <class A, class B>
  requires detail::MixedDevice<A, B>
auto operator==(const A& a, const B& b) {
  using T = detail::elem_t<A>;
  return detail::bin<detail::Rule::equality, T>(detail::Op::eq, At<T>(a, Loc{}), b);
}
template <class A, class B>
  requires detail::MixedDevice<A, B>
auto operator!=(const A& a, const B& b) {
  using T = detail::elem_t<A>;
  return detail::bin<detail::Rule::equality, T>(detail::Op::ne, At<T>(a, Loc{}), b);
}

// Refusals that say what to write instead.
#define QUERN_HOST_TARGET(symbol)                    \
  template <detail::HostUniform H, detail::Device U> \
  H& operator symbol(H & host, const U&) {           \
    detail::refuse_host_target<U>();                 \
    return host;                                     \
  }
QUERN_HOST_TARGET(+=)
QUERN_HOST_TARGET(-=)
QUERN_HOST_TARGET(*=)
QUERN_HOST_TARGET(/=)
QUERN_HOST_TARGET(%=)
QUERN_HOST_TARGET(&=)
QUERN_HOST_TARGET(|=)
QUERN_HOST_TARGET(^=)
#undef QUERN_HOST_TARGET
template <detail::DeviceBool A, class B>
Val<detail::elem_t<A>> operator<(const A& a, const B&) {
  static_assert(detail::never<B>, "quern: a comparison is compared again; write a < b && b < c");
  return a;
}
template <class S, detail::Device A>
  requires requires(S& stream) { stream.rdbuf(); }
S& operator<<(S& stream, const A&) {
  static_assert(detail::never<A>,
                "quern: a device value has no value while recording, so a host stream cannot show "
                "it; write print(\"{}\", value)");
  return stream;
}

}  // namespace quern
