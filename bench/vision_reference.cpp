#include "bench/vision_reference.h"

#include <algorithm>
#include <cmath>

namespace bench::reference {

namespace {

/// Calls f(to, j, left, right) for a row: the ends apart, so that the middle vectorises.
template <class F>
inline void along_row(int w, const F& f) {
  f(0, 0, std::min(1, w - 1));
#pragma omp simd
  for (int j = 1; j < w - 1; j++) f(j, j - 1, j + 1);
  if (w > 1) f(w - 1, w - 2, w - 1);
}

struct Rows {
  const uint8_t *above, *here, *below;
  Rows(const uint8_t* p, int i, int h, int w)
      : above(p + size_t(std::max(i - 1, 0)) * w),
        here(p + size_t(i) * w),
        below(p + size_t(std::min(i + 1, h - 1)) * w) {}
};

inline void order(uint8_t& a, uint8_t& b) {
  const uint8_t low = std::min(a, b), high = std::max(a, b);
  a = low, b = high;
}

}  // namespace

void sobel(const uint8_t* from, uint8_t* to, int h, int w) {
#pragma omp parallel for
  for (int i = 0; i < h; i++) {
    const Rows r(from, i, h, w);
    uint8_t* out = to + size_t(i) * w;
    along_row(w, [&](int j, int a, int b) {
      int x = (r.above[b] + 2 * r.here[b] + r.below[b]) - (r.above[a] + 2 * r.here[a] + r.below[a]);
      int y =
          (r.below[a] + 2 * r.below[j] + r.below[b]) - (r.above[a] + 2 * r.above[j] + r.above[b]);
      float length = std::sqrt(float(x * x + y * y));
      out[j] = uint8_t(int(std::min(length + 0.5f, 255.0f)));
    });
  }
}

void gaussian5(const uint8_t* from, uint16_t* columns, uint8_t* to, int h, int w) {
#pragma omp parallel for
  for (int i = 0; i < h; i++) {
    auto row = [&](int k) { return from + size_t(std::clamp(i + k, 0, h - 1)) * w; };
    const uint8_t *a = row(-2), *b = row(-1), *c = row(0), *d = row(1), *e = row(2);
    uint16_t* out = columns + size_t(i) * w;
#pragma omp simd
    for (int j = 0; j < w; j++) out[j] = uint16_t(a[j] + e[j] + 4 * (b[j] + d[j]) + 6 * c[j]);
  }
#pragma omp parallel for
  for (int i = 0; i < h; i++) {
    const uint16_t* s = columns + size_t(i) * w;
    uint8_t* out = to + size_t(i) * w;
    auto at = [&](int j, int a, int b, int c, int d) {
      out[j] = uint8_t((s[a] + s[d] + 4 * (s[b] + s[c]) + 6 * s[j] + 128) >> 8);
    };
    auto clamped = [&](int j) {
      auto k = [&](int n) { return std::clamp(j + n, 0, w - 1); };
      at(j, k(-2), k(-1), k(1), k(2));
    };
    for (int j = 0; j < std::min(2, w); j++) clamped(j);
#pragma omp simd
    for (int j = 2; j < w - 2; j++) at(j, j - 2, j - 1, j + 1, j + 2);
    for (int j = std::max(2, w - 2); j < w; j++) clamped(j);
  }
}

void median3(const uint8_t* from, uint8_t* to, int h, int w) {
#pragma omp parallel for
  for (int i = 0; i < h; i++) {
    const Rows r(from, i, h, w);
    uint8_t* out = to + size_t(i) * w;
    along_row(w, [&](int j, int left, int right) {
      uint8_t a = r.above[left], b = r.above[j], c = r.above[right];
      uint8_t d = r.here[left], e = r.here[j], f = r.here[right];
      uint8_t g = r.below[left], k = r.below[j], m = r.below[right];
      // Each row sorted; then the median of the largest first, the middle second, the least third.
      order(a, b), order(b, c), order(a, b);
      order(d, e), order(e, f), order(d, e);
      order(g, k), order(k, m), order(g, k);
      const uint8_t low = std::max(std::max(a, d), g), high = std::min(std::min(c, f), m);
      order(b, e), order(e, k), order(b, e);
      uint8_t x = low, y = e, z = high;
      order(x, y), order(y, z), order(x, y);
      out[j] = y;
    });
  }
}

void bilateral(const uint8_t* from, uint8_t* to, int h, int w, int radius, float sigma_distance,
               float sigma_grey) {
  const float a = -1 / (2 * sigma_distance * sigma_distance),
              b = -1 / (2 * sigma_grey * sigma_grey);
#pragma omp parallel for schedule(dynamic, 8)
  for (int i = 0; i < h; i++) {
    const uint8_t* here = from + size_t(i) * w;
    uint8_t* out = to + size_t(i) * w;
    constexpr int strip = 256;  // pixels whose sums stay in the first cache
    for (int first = 0; first < w; first += strip) {
      const int last = std::min(first + strip, w);
      float sum[strip] = {}, weights[strip] = {};
      for (int di = -radius; di <= radius; di++)
        for (int dj = -radius; dj <= radius; dj++) {
          const uint8_t* row = from + size_t(std::clamp(i + di, 0, h - 1)) * w;
          const float distance = a * float(di * di + dj * dj);
          auto add = [&](int j, int at) {
            const float v = row[at], d = v - float(here[j]);
            const float weight = std::exp(distance + b * d * d);
            sum[j - first] += weight * v;
            weights[j - first] += weight;
          };
          const int from_j = std::max(first, -dj), to_j = std::min(last, w - dj);
          for (int j = first; j < std::min(from_j, last); j++) add(j, 0);
#pragma omp simd
          for (int j = from_j; j < to_j; j++) add(j, j + dj);
          for (int j = std::max(to_j, first); j < last; j++) add(j, w - 1);
        }
      for (int j = first; j < last; j++)
        out[j] = uint8_t(int(sum[j - first] / weights[j - first] + 0.5f));
    }
  }
}

}  // namespace bench::reference
