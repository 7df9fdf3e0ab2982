#pragma once
// Vectors of 64 bytes for the hand-written versions, through the compilers' vector extension.
#include <cstddef>
#include <cstring>

namespace bench::reference {

template <class T>
struct WideOf {
  typedef T type __attribute__((vector_size(64)));
};
template <class T>
using Wide = typename WideOf<T>::type;
template <class T>
inline constexpr size_t lanes_of = 64 / sizeof(T);

template <class T>
inline Wide<T> load(const T* from) {
  Wide<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class T>
inline void store(T* to, Wide<T> v) {
  std::memcpy(to, &v, sizeof v);
}

/// Combines at(first) … at(end - 1), whose vectors begin at `first` and are `wide(i)`. Four
/// accumulators: the additions of one follow each other too slowly for memory in a cache.
template <class T, class V, class S, class C>
inline T fold(size_t first, size_t end, T identity, V wide, S at, C combine) {
  constexpr size_t lanes = lanes_of<T>;
  Wide<T> part[4];
  for (auto& p : part) p = Wide<T>{} + identity;
  size_t i = first;
  for (; i + 4 * lanes <= end; i += 4 * lanes)
    for (size_t k = 0; k < 4; k++) part[k] = combine(part[k], wide(i + k * lanes));
  const Wide<T> all = combine(combine(part[0], part[1]), combine(part[2], part[3]));
  T out = identity;
  for (size_t l = 0; l < lanes; l++) out = combine(out, T(all[l]));
  for (; i < end; i++) out = combine(out, at(i));
  return out;
}

}  // namespace bench::reference
