#pragma once
// Filters over a window around each pixel.
#include <quern/quern.h>

namespace examples {

/// Runs `body(i, j, at)` for every element of `result`, in parallel, where `at(i + a, j + b)` is
/// `picture` at an offset of at most `radius` and continues beyond the border as the last row or
/// column. The pixels whose window lies within the picture are a loop of their own without any
/// test, so the body is recorded four times.
template <class T, class R, class Body>
void windows(const quern::Field<T, 2>& picture, const quern::Field<R, 2>& result, int radius,
             const Body& body) {
  using namespace quern::lang;
  auto h = result.dim(0), w = result.dim(1);
  auto inside = [&](I32 i, I32 j) -> quern::Val<T> { return picture(i, j); };
  auto continued = [&](I32 i, I32 j) -> quern::Val<T> {
    return picture(clamp(i, 0, h - 1), clamp(j, 0, w - 1));
  };
  If(h > 2 * radius && w > 2 * radius) {
    auto from_end = [&](I32 k, I32 n) { return select(k < radius, k, n - 2 * radius + k); };
    for (auto [i, j] : grid(h - 2 * radius, w - 2 * radius)) body(i + radius, j + radius, inside);
    for (auto [k, j] : grid(2 * radius, w)) body(from_end(k, h), j, continued);
    for (auto [i, k] : grid(h - 2 * radius, 2 * radius)) {
      body(i + radius, from_end(k, w), continued);
    }
  }
  else {
    for (auto [i, j] : result) body(i, j, continued);
  }
}

}  // namespace examples
