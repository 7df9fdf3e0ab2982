#include "bench/algorithms_reference.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "bench/wide.h"

namespace bench::reference {

namespace {
/// Calls body(thread, first, end) on all threads, with equal parts of 0 … n-1.
template <class F>
void parts(size_t n, F body) {
#pragma omp parallel
  {
    size_t t = size_t(omp_get_thread_num()), count = size_t(omp_get_num_threads());
    body(t, n * t / count, n * (t + 1) / count);
  }
}

/// One pass over memory for what depends on all elements before: threads take tiles that fit a
/// cache in order; first(thread, begin, end) yields what a tile adds to the sum, second(thread,
/// begin, end, sum before) ends it. A tile waits for the sum of the one before only (Merrill &
/// Garland 2016, without looking further back). Yields the sum of all.
template <class T, class First, class Second>
T chained(size_t n, First first, Second second) {
  constexpr size_t tile = 16384;
  struct alignas(64) Sum {
    std::atomic<bool> known{false};
    T before{};
  };
  const size_t tiles = (n + tile - 1) / tile;
  auto sums = std::make_unique<Sum[]>(tiles + 1);
  sums[0].known = true;
  std::atomic<size_t> next = 0;
  auto work = [&](size_t thread) {
    for (size_t t; (t = next.fetch_add(1, std::memory_order_relaxed)) < tiles;) {
      const size_t begin = t * tile, end = std::min(n, begin + tile);
      const T sum = first(thread, begin, end);
      while (!sums[t].known.load(std::memory_order_acquire)) {
      }
      sums[t + 1].before = sums[t].before + sum;
      sums[t + 1].known.store(true, std::memory_order_release);
      second(thread, begin, end, sums[t].before);
    }
  };
#pragma omp parallel if (tiles > 1)
  work(size_t(omp_get_thread_num()));
  return sums[tiles].before;
}

/// The sums of a vector's first elements, by shifts of 1, 2, 4, … lanes.
template <class T>
inline Wide<T> sums_within(Wide<T> v) {
  typedef int32_t Places __attribute__((vector_size(64)));
  const Wide<T> zero = {};
  for (int shift = 1; shift < 16; shift *= 2) {
    Places from;
    for (int l = 0; l < 16; l++) from[l] = l >= shift ? l - shift : 16;  // of v, else of zero
    v += __builtin_shuffle(v, zero, from);
  }
  return v;
}

template <class T>
void scan(const T* x, T* y, size_t n) {
  static_assert(sizeof(T) == 4);
  auto total = [&](size_t, size_t begin, size_t end) {
    return fold<T>(
        begin, end, 0, [&](size_t i) { return load(x + i); }, [&](size_t i) { return x[i]; },
        [](auto a, auto b) { return a + b; });
  };
  auto finish = [&](size_t, size_t begin, size_t end, T sum) {
    size_t i = begin;
    for (; i + 16 <= end; i += 16) {
      const Wide<T> v = sums_within<T>(load(x + i)) + sum;
      store(y + i, v);
      sum = v[15];
    }
    for (; i < end; i++) y[i] = sum += x[i];
  };
  chained<T>(n, total, finish);
}
}  // namespace

float least(const float* x, size_t n) {
  float least = std::numeric_limits<float>::max();
  parts(n, [&](size_t, size_t first, size_t end) {
    const float mine = fold<float>(
        first, end, std::numeric_limits<float>::max(), [&](size_t i) { return load(x + i); },
        [&](size_t i) { return x[i]; }, [](auto a, auto b) { return b < a ? b : a; });
#pragma omp critical
    least = std::min(least, mine);
  });
  return least;
}

double dot(const float* x, const float* y, size_t n) {
  float sum = 0;
  parts(n, [&](size_t, size_t first, size_t end) {
    const float mine = fold<float>(
        first, end, 0, [&](size_t i) { return load(x + i) * load(y + i); },
        [&](size_t i) { return x[i] * y[i]; }, [](auto a, auto b) { return a + b; });
#pragma omp critical
    sum += mine;
  });
  return sum;
}

size_t least_index(const float* x, size_t n) {
  constexpr size_t block = 2048;
  float least = std::numeric_limits<float>::max();
  size_t at = 0;
  parts(n, [&](size_t, size_t first, size_t end) {
    // The block that holds the least; which of its elements it is, is looked for once.
    float mine = std::numeric_limits<float>::max();
    size_t held = first;
    for (size_t b = first; b < end; b += block) {
      const float found = fold<float>(
          b, std::min(end, b + block), std::numeric_limits<float>::max(),
          [&](size_t i) { return load(x + i); }, [&](size_t i) { return x[i]; },
          [](auto p, auto q) { return q < p ? q : p; });
      if (found < mine) mine = found, held = b;
    }
    if (first == end) return;
    while (x[held] != mine) held++;
#pragma omp critical
    if (mine < least || (mine == least && held < at)) least = mine, at = held;
  });
  return at;
}

void inclusive_scan(const float* x, float* y, size_t n) { scan(x, y, n); }
void inclusive_scan(const int32_t* x, int32_t* y, size_t n) { scan(x, y, n); }

namespace {
/// Appends the positive ones of x[begin, end) at `to`, which has room for 16 more; yields how many.
size_t keep(const float* x, size_t begin, size_t end, float* to) {
  size_t kept = 0, i = begin;
#ifdef __AVX512F__
  for (; i + 16 <= end; i += 16) {
    const __m512 v = _mm512_loadu_ps(x + i);
    const __mmask16 positive = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ);
    _mm512_storeu_ps(to + kept, _mm512_maskz_compress_ps(positive, v));
    kept += size_t(__builtin_popcount(positive));
  }
#endif
  for (; i < end; i++) {
    to[kept] = x[i];
    kept += x[i] > 0;
  }
  return kept;
}
}  // namespace

size_t compact(const float* x, float* y, size_t n) {
  const size_t threads = size_t(omp_get_max_threads()), room = 16384 + 16;
  std::vector<float> buffer(threads * room);
  std::vector<size_t> count(threads * 8);
  return chained<size_t>(
      n,
      [&](size_t t, size_t begin, size_t end) {
        return count[8 * t] = keep(x, begin, end, &buffer[t * room]);
      },
      [&](size_t t, size_t, size_t, size_t before) {
        std::memcpy(y + before, &buffer[t * room], count[8 * t] * sizeof(float));
      });
}

void histogram(const uint8_t* x, uint32_t* bins, size_t n) {
  std::fill(bins, bins + 256, 0u);
  parts(n, [&](size_t, size_t first, size_t end) {
    // Four tables: equal neighbours do not wait for each other.
    uint32_t found[4][256] = {};
    size_t i = first;
    for (; i + 8 <= end; i += 8) {
      uint64_t eight;
      std::memcpy(&eight, x + i, 8);
      for (int k = 0; k < 8; k++) found[k % 4][eight >> (8 * k) & 255]++;
    }
    for (; i < end; i++) found[0][x[i]]++;
#pragma omp critical
    for (size_t b = 0; b < 256; b++)
      bins[b] += found[0][b] + found[1][b] + found[2][b] + found[3][b];
  });
}

void histogram(const uint32_t* x, uint32_t* bins, size_t n) {
  std::fill(bins, bins + 256, 0u);
  parts(n, [&](size_t, size_t first, size_t end) {
    uint32_t found[4][256] = {};
    size_t i = first;
    for (; i + 4 <= end; i += 4)
      for (size_t k = 0; k < 4; k++) found[k][x[i + k]]++;
    for (; i < end; i++) found[0][x[i]]++;
#pragma omp critical
    for (size_t b = 0; b < 256; b++)
      bins[b] += found[0][b] + found[1][b] + found[2][b] + found[3][b];
  });
}

void histogram(const float* x, uint32_t* bins, size_t count, float lo, float hi, size_t n) {
  const float scale = float(count) / (hi - lo);
  std::fill(bins, bins + count, 0u);
  parts(n, [&](size_t, size_t first, size_t end) {
    // Bins in vectors, a block ahead; what lies outside has a bin of its own.
    constexpr size_t block = 1024;
    uint32_t bin[block];
    std::vector<uint32_t> even(count + 1), odd(count + 1);
    for (size_t from = first; from < end; from += block) {
      const size_t some = std::min(block, end - from);
      for (size_t k = 0; k < some; k++) {
        const float v = x[from + k];
        const int inside = std::min(int((v - lo) * scale), int(count) - 1);
        bin[k] = v >= lo && v <= hi ? uint32_t(inside) : uint32_t(count);
      }
      size_t k = 0;
      for (; k + 2 <= some; k += 2) even[bin[k]]++, odd[bin[k + 1]]++;
      if (k < some) even[bin[k]]++;
    }
#pragma omp critical
    for (size_t b = 0; b < count; b++) bins[b] += even[b] + odd[b];
  });
}

void radix_sort(uint32_t* keys, uint32_t* other, uint32_t* values, uint32_t* other_values,
                size_t n) {
  const size_t threads = size_t(omp_get_max_threads());
  std::vector<size_t> places(256 * threads);
  for (int shift = 0; shift < 32; shift += 8) {
    parts(n, [&](size_t t, size_t first, size_t end) {
      size_t next[256] = {};
      for (size_t i = first; i < end; i++) next[keys[i] >> shift & 255]++;
      for (size_t d = 0; d < 256; d++) places[d * threads + t] = next[d];
#pragma omp barrier
#pragma omp single
      {
        size_t sum = 0;
        for (size_t& p : places) p = std::exchange(sum, sum + p);
      }
      for (size_t d = 0; d < 256; d++) next[d] = places[d * threads + t];
      for (size_t i = first; i < end; i++) {
        const size_t at = next[keys[i] >> shift & 255]++;
        other[at] = keys[i];
        if (values) other_values[at] = values[i];
      }
    });
    std::swap(keys, other);
    std::swap(values, other_values);
  }
}

}  // namespace bench::reference
