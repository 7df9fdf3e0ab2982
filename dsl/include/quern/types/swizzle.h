#pragma once
// Swizzles: every choice of two to four components of a vector, as functions that yield a value.
#include "quern/loc.h"

namespace quern::detail {

/// One base for host vectors, values, variables and elements; `Self` has
/// `template <int... I> auto swizzle(Loc) const`.
template <class Self, int N>
struct Swizzles;

#define QUERN_SWIZZLE(name, ...)                                             \
  constexpr auto name(Loc l = Loc::here()) const {                           \
    return static_cast<const Self*>(this)->template swizzle<__VA_ARGS__>(l); \
  }
// Each level appends one letter in turn; those of two, three and four letters are functions.
#define QUERN_4(a, b, c, d, i, j, k, l) QUERN_SWIZZLE(a##b##c##d, i, j, k, l)
#define QUERN_3(LAST, a, b, c, i, j, k) \
  QUERN_SWIZZLE(a##b##c, i, j, k)       \
  LAST(a, b, c, i, j, k)
#define QUERN_2(THIRD, a, b, i, j) \
  QUERN_SWIZZLE(a##b, i, j)        \
  THIRD(a, b, i, j)

#define QUERN_LAST_2(a, b, c, i, j, k) \
  QUERN_4(a, b, c, x, i, j, k, 0)      \
  QUERN_4(a, b, c, y, i, j, k, 1)
#define QUERN_THIRD_2(a, b, i, j)         \
  QUERN_3(QUERN_LAST_2, a, b, x, i, j, 0) \
  QUERN_3(QUERN_LAST_2, a, b, y, i, j, 1)
#define QUERN_SECOND_2(a, i)         \
  QUERN_2(QUERN_THIRD_2, a, x, i, 0) \
  QUERN_2(QUERN_THIRD_2, a, y, i, 1)

#define QUERN_LAST_3(a, b, c, i, j, k) \
  QUERN_LAST_2(a, b, c, i, j, k)       \
  QUERN_4(a, b, c, z, i, j, k, 2)
#define QUERN_THIRD_3(a, b, i, j)         \
  QUERN_3(QUERN_LAST_3, a, b, x, i, j, 0) \
  QUERN_3(QUERN_LAST_3, a, b, y, i, j, 1) \
  QUERN_3(QUERN_LAST_3, a, b, z, i, j, 2)
#define QUERN_SECOND_3(a, i)         \
  QUERN_2(QUERN_THIRD_3, a, x, i, 0) \
  QUERN_2(QUERN_THIRD_3, a, y, i, 1) \
  QUERN_2(QUERN_THIRD_3, a, z, i, 2)

#define QUERN_LAST_4(a, b, c, i, j, k) \
  QUERN_LAST_3(a, b, c, i, j, k)       \
  QUERN_4(a, b, c, w, i, j, k, 3)
#define QUERN_THIRD_4(a, b, i, j)         \
  QUERN_3(QUERN_LAST_4, a, b, x, i, j, 0) \
  QUERN_3(QUERN_LAST_4, a, b, y, i, j, 1) \
  QUERN_3(QUERN_LAST_4, a, b, z, i, j, 2) \
  QUERN_3(QUERN_LAST_4, a, b, w, i, j, 3)
#define QUERN_SECOND_4(a, i)         \
  QUERN_2(QUERN_THIRD_4, a, x, i, 0) \
  QUERN_2(QUERN_THIRD_4, a, y, i, 1) \
  QUERN_2(QUERN_THIRD_4, a, z, i, 2) \
  QUERN_2(QUERN_THIRD_4, a, w, i, 3)

template <class Self>
struct Swizzles<Self, 2> {
  QUERN_SECOND_2(x, 0)
  QUERN_SECOND_2(y, 1)
};
template <class Self>
struct Swizzles<Self, 3> {
  QUERN_SECOND_3(x, 0)
  QUERN_SECOND_3(y, 1)
  QUERN_SECOND_3(z, 2)
};
template <class Self>
struct Swizzles<Self, 4> {
  QUERN_SECOND_4(x, 0)
  QUERN_SECOND_4(y, 1)
  QUERN_SECOND_4(z, 2)
  QUERN_SECOND_4(w, 3)
};

#undef QUERN_SWIZZLE
#undef QUERN_2
#undef QUERN_3
#undef QUERN_4
#undef QUERN_SECOND_2
#undef QUERN_SECOND_3
#undef QUERN_SECOND_4
#undef QUERN_THIRD_2
#undef QUERN_THIRD_3
#undef QUERN_THIRD_4
#undef QUERN_LAST_2
#undef QUERN_LAST_3
#undef QUERN_LAST_4

}  // namespace quern::detail
