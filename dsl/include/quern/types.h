#pragma once
// The types a device value can have, and what the language's conversions say about them.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "quern/loc.h"

namespace quern {

template <class T>
class Val;
template <class T>
class Var;
template <class T>
class Elem;

/// A host vector; on the device it is `Val<Vec<T, N>>`, one scalar per component.
template <class T, int N>
struct Vec;
template <class T>
struct Vec<T, 2> {
  T x{}, y{};
  constexpr Vec() = default;
  constexpr Vec(T a, T b) : x(a), y(b) {}
  constexpr bool operator==(const Vec&) const = default;
};
template <class T>
struct Vec<T, 3> {
  T x{}, y{}, z{};
  constexpr Vec() = default;
  constexpr Vec(T a, T b, T c) : x(a), y(b), z(c) {}
  constexpr bool operator==(const Vec&) const = default;
};
template <class T>
struct Vec<T, 4> {
  T x{}, y{}, z{}, w{};
  constexpr Vec() = default;
  constexpr Vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  constexpr bool operator==(const Vec&) const = default;
};

namespace detail {

/// The scalar types, numbered as in the intermediate representation.
enum class Scalar : uint8_t { none, b1, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64 };

template <class>
inline constexpr bool never = false;
template <class X>
using bare = std::remove_cvref_t<X>;

template <class T>
concept DeviceScalar = std::is_arithmetic_v<T> && !std::is_same_v<T, long double>;
template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T>
consteval Scalar scalar_of() {
  constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  if (std::is_same_v<T, bool>) return Scalar::b1;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? Scalar::f32 : Scalar::f64;
  return Scalar(int(std::is_signed_v<T> ? Scalar::i8 : Scalar::u8) + log2);
}

/// The one host type of a scalar: `long` and `long long` are both i64.
template <class T>
consteval auto canonical() {
  constexpr Scalar s = scalar_of<T>();
  if constexpr (!std::is_integral_v<T> || s == Scalar::b1)
    return std::type_identity<T>{};
  else if constexpr (s == Scalar::i8)
    return std::type_identity<int8_t>{};
  else if constexpr (s == Scalar::i16)
    return std::type_identity<int16_t>{};
  else if constexpr (s == Scalar::i32)
    return std::type_identity<int32_t>{};
  else if constexpr (s == Scalar::i64)
    return std::type_identity<int64_t>{};
  else if constexpr (s == Scalar::u8)
    return std::type_identity<uint8_t>{};
  else if constexpr (s == Scalar::u16)
    return std::type_identity<uint16_t>{};
  else if constexpr (s == Scalar::u32)
    return std::type_identity<uint32_t>{};
  else
    return std::type_identity<uint64_t>{};
}
template <class T>
using canonical_t = typename decltype(canonical<T>())::type;

enum class Shape : uint8_t { scalar, vector };

/// How a host type decomposes into scalars.
template <class T>
struct Traits {
  using scalar = T;
  static constexpr Shape shape = Shape::scalar;
  static constexpr int count = 1;
};
template <class S, int N>
struct Traits<Vec<S, N>> {
  using scalar = S;
  static constexpr Shape shape = Shape::vector;
  static constexpr int count = N;
};
template <class T>
using scalar_t = typename Traits<T>::scalar;
template <class T>
inline constexpr int count_of = Traits<T>::count;
template <class T>
inline constexpr bool is_scalar = Traits<T>::shape == Shape::scalar;
template <class T>
inline constexpr Scalar type_of = scalar_of<scalar_t<T>>();

/// `T` with its scalars replaced by `S`.
template <class T, class S>
struct Rebind {
  using type = S;
};
template <class T, int N, class S>
struct Rebind<Vec<T, N>, S> {
  using type = Vec<S, N>;
};
template <class T, class S>
using rebind_t = typename Rebind<T, S>::type;

/// Component `k` of a host or device value; a scalar is its own.
template <class T>
constexpr auto component(const T& v, int k) {
  if constexpr (!requires { v.x; })
    return v;
  else {
    if constexpr (requires { v.w; }) {
      if (k == 3) return v.w;
    }
    if constexpr (requires { v.z; }) {
      if (k == 2) return v.z;
    }
    return k == 0 ? v.x : v.y;
  }
}

// ---- operands
template <class X>
concept Device = requires { typename bare<X>::quern_elem; };
template <class X>
concept HostNumber = std::is_arithmetic_v<bare<X>>;
template <class X>
concept Host = HostNumber<X> || (!is_scalar<bare<X>>);
template <class X>
concept Operand = Device<X> || Host<X>;

template <class X>
struct ElemOf {
  using type = X;
};
template <Device X>
struct ElemOf<X> {
  using type = typename X::quern_elem;
};
/// The host type behind an operand: of `Val<float>` and of `float` it is float.
template <class X>
using elem_t = typename ElemOf<bare<X>>::type;

template <class X>
concept DeviceBool = Device<X> && std::is_same_v<elem_t<X>, bool>;

// ---- conversions
/// C++'s usual arithmetic conversions, promotions included.
template <class A, class B>
using common_t = canonical_t<decltype(A() + B())>;
template <class A>
using promoted_t = canonical_t<decltype(+A())>;

/// Does a conversion between device values lose something? It then needs cast<T>.
template <class From, class To>
consteval bool narrows() {
  if (scalar_of<From>() == scalar_of<To>()) return false;
  if (std::is_same_v<To, bool>) return true;
  if (std::is_floating_point_v<From>)
    return !std::is_floating_point_v<To> || sizeof(To) < sizeof(From);
  return !std::is_floating_point_v<To> && sizeof(To) < sizeof(From);
}

/// The type a host number of type H takes beside a device scalar S in arithmetic.
template <class S, class H>
using adopted_scalar_t = std::conditional_t<
    std::is_floating_point_v<S>, S,
    std::conditional_t<std::is_floating_point_v<H>,
                       std::conditional_t<std::is_same_v<H, float>, float, double>,
                       std::conditional_t<std::is_same_v<H, bool> && std::is_same_v<S, bool>, bool,
                                          promoted_t<S>>>>;
/// The type of operand U beside a device operand of host type T.
template <class T, class U>
using operand_t =
    rebind_t<elem_t<U>,
             typename std::conditional_t<
                 Device<U>, std::type_identity<scalar_t<elem_t<U>>>,
                 std::type_identity<adopted_scalar_t<scalar_t<T>, scalar_t<elem_t<U>>>>>::type>;

}  // namespace detail
}  // namespace quern
