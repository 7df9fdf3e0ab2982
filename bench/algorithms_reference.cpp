#include "bench/algorithms_reference.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

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

template <class T>
void scan(const T* x, T* y, size_t n) {
  std::vector<T> before(size_t(omp_get_max_threads()) + 1);
  parts(n, [&](size_t t, size_t first, size_t end) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = first; i < end; i++) sum += x[i];
    before[t + 1] = sum;
#pragma omp barrier
#pragma omp single
    for (size_t k = 1; k < before.size(); k++) before[k] += before[k - 1];
    T made = before[t];
    for (size_t i = first; i < end; i++) y[i] = made += x[i];
  });
}
}  // namespace

float least(const float* x, size_t n) {
  float least = INFINITY;
#pragma omp parallel for simd reduction(min : least)
  for (size_t i = 0; i < n; i++) least = x[i] < least ? x[i] : least;
  return least;
}

double dot(const float* x, const float* y, size_t n) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

size_t least_index(const float* x, size_t n) {
  const float wanted = least(x, n);
  size_t at = n;
#pragma omp parallel for simd reduction(min : at)
  for (size_t i = 0; i < n; i++) at = std::min(at, x[i] == wanted ? i : n);
  return at;
}

void inclusive_scan(const float* x, float* y, size_t n) { scan(x, y, n); }
void inclusive_scan(const int32_t* x, int32_t* y, size_t n) { scan(x, y, n); }

size_t compact(const float* x, float* y, size_t n) {
  std::vector<size_t> before(size_t(omp_get_max_threads()) + 1);
  parts(n, [&](size_t t, size_t first, size_t end) {
    size_t kept = 0;
    for (size_t i = first; i < end; i++) kept += x[i] > 0;
    before[t + 1] = kept;
#pragma omp barrier
#pragma omp single
    for (size_t k = 1; k < before.size(); k++) before[k] += before[k - 1];
    size_t at = before[t];
    for (size_t i = first; i < end; i++)
      if (x[i] > 0) y[at++] = x[i];
  });
  return before.back();
}

void histogram(const uint8_t* x, uint32_t* bins, size_t n) {
  std::fill(bins, bins + 256, 0u);
  parts(n, [&](size_t, size_t first, size_t end) {
    uint32_t found[256] = {};
    for (size_t i = first; i < end; i++) found[x[i]]++;
#pragma omp critical
    for (size_t b = 0; b < 256; b++) bins[b] += found[b];
  });
}

void histogram(const float* x, uint32_t* bins, size_t count, float lo, float hi, size_t n) {
  const float scale = float(count) / (hi - lo);
  std::fill(bins, bins + count, 0u);
  parts(n, [&](size_t, size_t first, size_t end) {
    std::vector<uint32_t> found(count);
    for (size_t i = first; i < end; i++)
      if (x[i] >= lo && x[i] <= hi) found[std::min(size_t((x[i] - lo) * scale), count - 1)]++;
#pragma omp critical
    for (size_t b = 0; b < count; b++) bins[b] += found[b];
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
