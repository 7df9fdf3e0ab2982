#pragma once
// The types a device value can have, and what the language's conversions say about them.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "quern/loc.h"
#include "quern/types/array.h"
#include "quern/types/half.h"
#include "quern/types/structure.h"
#include "quern/types/vector.h"

namespace quern {

template <class T>
class Val;
template <class T>
class Var;
template <class T>
class Elem;
template <class T>
class Item;

namespace detail {

/// The scalar types, numbered as in the intermediate representation.
enum class Scalar : uint8_t { none, b1, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64 };

template <class>
inline constexpr bool never = false;
template <class X>
using bare = std::remove_cvref_t<X>;

template <class T>
inline constexpr bool is_half = std::is_same_v<T, half>;
template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || is_half<T>;
template <class T>
concept DeviceScalar = (std::is_arithmetic_v<T> && !std::is_same_v<T, long double>) || is_half<T>;
template <class T>
concept Integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T>
consteval Scalar scalar_of() {
  constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  if (std::is_same_v<T, bool>) return Scalar::b1;
  if (is_half<T>) return Scalar::f16;
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

enum class Shape : uint8_t { scalar, vector, matrix, structure };

/// The scalar types of an aggregate, in order.
template <int N>
struct ScalarList {
  Scalar v[size_t(N == 0 ? 1 : N)] = {};
};

/// How a host type decomposes into scalars. `each(v, f)` calls f with each scalar of v in order.
template <class T>
struct Traits {
  using scalar = T;
  static constexpr Shape shape = Shape::scalar;
  static constexpr int rows = 1, columns = 1, count = 1;
  static constexpr bool supported = DeviceScalar<T>;
  static consteval ScalarList<1> scalars() { return {{scalar_of<T>()}}; }
  template <class V, class F>
  static constexpr void each(V& v, F&& f) {
    f(v);
  }
};
/// Of `N` scalars of one type, `value(k)` of the host type.
template <class S, Shape K, int R, int C>
struct UniformTraits {
  using scalar = S;
  static constexpr Shape shape = K;
  static constexpr int rows = R, columns = C, count = R * C;
  static constexpr bool supported = DeviceScalar<S>;
  static consteval ScalarList<count> scalars() {
    ScalarList<count> out;
    for (Scalar& s : out.v) s = scalar_of<S>();
    return out;
  }
  template <class V, class F>
  static constexpr void each(V& v, F&& f) {
    for (int k = 0; k < count; k++) f(v.value(k));
  }
};
template <class S, int N>
struct Traits<Vec<S, N>> : UniformTraits<S, Shape::vector, N, 1> {};
template <class S, int R, int C>
struct Traits<Mat<S, R, C>> : UniformTraits<S, Shape::matrix, R, C> {};

template <class T>
inline constexpr int count_of = Traits<T>::count;
template <class... T>
consteval auto joined_scalars() {
  constexpr int n = (count_of<T> + ... + 0);
  ScalarList<n> out;
  int at = 0;
  [[maybe_unused]] auto append = [&](const auto& list) {
    for (Scalar s : list.v) out.v[at++] = s;
  };
  (append(Traits<T>::scalars()), ...);
  return out;
}
/// Of a structure S with members M: its scalars are theirs, member after member.
template <class S, class M = typename Members<S>::type>
struct StructureTraits;
template <class S, class... M>
struct StructureTraits<S, Types<M...>> {
  using scalar = void;
  using members = Types<M...>;
  static constexpr Shape shape = Shape::structure;
  static constexpr int rows = 1, columns = 1, count = (count_of<M> + ... + 0);
  static constexpr bool supported = (Traits<M>::supported && ...);
  static consteval auto scalars() { return joined_scalars<M...>(); }
  template <class V, class F>
  static constexpr void each(V& v, F&& f) {
    with_members<int(sizeof...(M))>(v, [&](auto&... m) { (Traits<M>::each(m, f), ...); });
  }
};
template <template <class, class...> class P, class... A>
struct Traits<P<HostW, A...>> : StructureTraits<P<HostW, A...>> {};
/// How many scalars an array may hold: compilers list them, and devices give each thread its own.
inline constexpr int most_scalars = 1 << 16;
/// Element after element. Like a structure it has no arithmetic, and is initialised by its like.
template <class T, int N>
struct Traits<Array<T, N>> {
  using scalar = void;
  static constexpr bool fits = int64_t(N) * count_of<T> <= most_scalars;
  static_assert(fits,
                "quern: an array on the device has at most 65,536 scalars, since every thread "
                "keeps its own; write a Field");
  static constexpr Shape shape = Shape::structure;
  static constexpr int rows = 1, columns = 1, count = fits ? N * count_of<T> : count_of<T>;
  static constexpr bool supported = Traits<T>::supported;
  static consteval ScalarList<count> scalars() {
    ScalarList<count> out;
    constexpr auto one = Traits<T>::scalars();
    for (int k = 0; k < count; k++) out.v[k] = one.v[k % count_of<T>];
    return out;
  }
  template <class V, class F>
  static constexpr void each(V& v, F&& f) {
    for (int k = 0; k < N; k++) Traits<T>::each(v[k], f);
  }
};
template <class T>
inline constexpr bool is_array = false;
template <class T, int N>
inline constexpr bool is_array<Array<T, N>> = true;

template <class T>
using scalar_t = typename Traits<T>::scalar;
template <class T>
inline constexpr bool is_scalar = Traits<T>::shape == Shape::scalar;
template <class T>
inline constexpr bool is_vector = Traits<T>::shape == Shape::vector;
template <class T>
inline constexpr bool is_matrix = Traits<T>::shape == Shape::matrix;
template <class T>
inline constexpr bool is_structure = Traits<T>::shape == Shape::structure;
template <class T>
inline constexpr ScalarList<count_of<T>> scalars_of = Traits<T>::scalars();
/// The scalar type of a T whose scalars are all of one.
template <class T>
inline constexpr Scalar type_of = scalar_of<scalar_t<T>>();

/// `T` with its scalars replaced by `S`; a structure has none to replace.
template <class T, class S>
struct Rebind {
  using type = std::conditional_t<is_structure<T>, T, S>;
};
template <class T, int N, class S>
struct Rebind<Vec<T, N>, S> {
  using type = Vec<S, N>;
};
template <class T, int R, int C, class S>
struct Rebind<Mat<T, R, C>, S> {
  using type = Mat<S, R, C>;
};
template <class T, class S>
using rebind_t = typename Rebind<T, S>::type;
template <class A, class B>
inline constexpr bool same_shape = std::is_same_v<rebind_t<A, bool>, rebind_t<B, bool>>;

template <class T, bool = is_structure<T>>
struct Canonical {
  using type = T;
};
template <class T>
struct Canonical<T, false> {
  using type = rebind_t<T, typename decltype(canonical<scalar_t<T>>())::type>;
};
template <class T>
using canonical_t = typename Canonical<T>::type;

/// A row: of a matrix a vector, of a vector a scalar.
template <class T>
struct Row {
  using type = scalar_t<T>;
};
template <class S, int R, int C>
struct Row<Mat<S, R, C>> {
  using type = Vec<S, C>;
};
template <class T>
using row_t = typename Row<T>::type;

/// Where the scalars of a T lie inside it, in bytes.
template <class T>
const uint32_t* offsets_of() {
  static const struct Table {
    uint32_t v[size_t(count_of<T>)];
    Table() {
      T probe{};
      int k = 0;
      Traits<T>::each(probe, [&](auto& scalar) {
        v[k++] = uint32_t(reinterpret_cast<const char*>(&scalar) -
                          reinterpret_cast<const char*>(&probe));
      });
    }
  } table;
  return table.v;
}

// ---- the mutable locals of a variable
/// One for each scalar; those of an array's elements lie together in one, as an array.
template <int N>
struct SlotPlan {
  struct Place {
    int slot, element;
  };
  int slots = 0;
  int length[size_t(N)] = {};  ///< elements of each slot
  Place at[size_t(N)] = {};    ///< where each scalar lies
};
template <class T>
struct Slots {
  static consteval auto plan() {
    SlotPlan<count_of<T>> out;
    for (int k = 0; k < count_of<T>; k++) out.length[k] = 1, out.at[k] = {k, 0};
    out.slots = count_of<T>;
    return out;
  }
};
template <class T, int N>
struct Slots<Array<T, N>> {
  static consteval auto plan() {
    SlotPlan<count_of<Array<T, N>>> out;
    constexpr auto one = Slots<T>::plan();
    out.slots = one.slots;
    for (int k = 0; k < one.slots; k++) out.length[k] = N * one.length[k];
    for (int k = 0; k < count_of<Array<T, N>>; k++) {
      auto [slot, element] = one.at[k % count_of<T>];
      out.at[k] = {slot, k / count_of<T> * one.length[slot] + element};
    }
    return out;
  }
};
template <class T>
  requires(is_structure<T> && !is_array<T>)
struct Slots<T> {
  template <class... M>
  static consteval auto joined(Types<M...>) {
    SlotPlan<count_of<T>> out;
    int scalars = 0;
    auto append = [&](const auto& part, int count) {
      for (int k = 0; k < count; k++)
        out.at[scalars++] = {out.slots + part.at[k].slot, part.at[k].element};
      for (int k = 0; k < part.slots; k++) out.length[out.slots + k] = part.length[k];
      out.slots += part.slots;
    };
    (append(Slots<M>::plan(), count_of<M>), ...);
    return out;
  }
  static consteval auto plan() { return joined(typename Traits<T>::members{}); }
};
template <class T>
inline constexpr auto slots_of = Slots<T>::plan();

// ---- operands
template <class X>
concept Device = requires { typename bare<X>::quern_elem; };
template <class X>
concept HostNumber = std::is_arithmetic_v<bare<X>> || is_half<bare<X>>;
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

/// An operand whose scalars are of one type: arithmetic is defined by component.
template <class X>
concept Uniform = Operand<X> && !is_structure<elem_t<X>>;
template <class X>
concept DeviceUniform = Device<X> && Uniform<X>;
template <class X>
concept HostUniform = Host<X> && !is_structure<bare<X>>;

template <class X>
concept DeviceBool = Device<X> && std::is_same_v<elem_t<X>, bool>;

/// The position of the first scalar of part K of parts T….
template <std::size_t K, class... T>
consteval int first_scalar() {
  int counts[] = {count_of<T>..., 0}, at = 0;
  for (std::size_t k = 0; k < K; k++) at += counts[k];
  return at;
}

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
  if (is_floating<From>) return !is_floating<To> || sizeof(To) < sizeof(From);
  return !is_floating<To> && sizeof(To) < sizeof(From);
}

/// The type a host number of type H takes beside a device scalar S in arithmetic.
template <class S, class H>
using adopted_scalar_t = std::conditional_t<
    is_floating<S>, S,
    std::conditional_t<is_floating<H>, std::conditional_t<(sizeof(H) > 4), double, H>,
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
