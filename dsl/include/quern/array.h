#pragma once
// Arrays of a fixed size, as values and as local variables: `Var<Array<float,
// 8>> a; a[i] = 1;`.
#include <cstddef>
#include <cstdint>

namespace quern {

/// N elements in one piece, an aggregate like std::array: `Array<int, 3> a{1,
/// 2, 3};`.
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

}  // namespace quern
