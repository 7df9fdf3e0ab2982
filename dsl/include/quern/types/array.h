#pragma once
// Arrays of a fixed size, as values and as local variables: `Var<Array<float, 8>> a; a[i] = 1;`.
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace quern {

/// N elements in one piece, an aggregate like std::array: `Array<int, 3> a{1, 2, 3};`.
template <class T, int N>
struct Array {
  static_assert(N >= 1, "quern: an array has one element or more");
  using element = T;
  T v[N];

  static constexpr int size() { return N; }
  constexpr T& operator[](std::size_t k) { return v[k]; }
  constexpr const T& operator[](std::size_t k) const { return v[k]; }
  constexpr T* begin() { return v; }
  constexpr T* end() { return v + N; }
  constexpr const T* begin() const { return v; }
  constexpr const T* end() const { return v + N; }
  friend constexpr bool operator==(const Array& a, const Array& b) {
    for (int k = 0; k < N; k++)
      if (!(a.v[k] == b.v[k])) return false;
    return true;
  }
};

template <class T, class... U>
  requires(std::is_same_v<T, U> && ...)
Array(T, U...) -> Array<T, int(sizeof...(U)) + 1>;

namespace detail {

/// std::array and its like, known by what they offer.
template <class C>
concept StandardArray = requires(const C& c) {
  std::tuple_size<C>::value;
  c.data();
};
/// Its elements as an Array.
template <StandardArray C>
constexpr auto own_array(const C& c) {
  auto element = [&](std::size_t k) {
    if constexpr (StandardArray<std::remove_cvref_t<decltype(c.data()[k])>>)
      return own_array(c.data()[k]);
    else
      return c.data()[k];
  };
  Array<decltype(element(0)), int(std::tuple_size<C>::value)> out{};
  for (std::size_t k = 0; k < std::tuple_size<C>::value; k++) out[k] = element(k);
  return out;
}
template <class C>
using own_array_t = decltype(own_array(std::declval<const C&>()));

/// The elements of an array; everything else is its own.
template <class T>
struct ArrayElement {
  using type = T;
};
template <class T, int N>
struct ArrayElement<Array<T, N>> {
  using type = T;
};

}  // namespace detail
}  // namespace quern
