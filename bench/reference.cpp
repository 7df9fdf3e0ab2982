#include "bench/reference.h"

#include <omp.h>

#include <cmath>

#include "bench/wide.h"

namespace bench::reference {

void fill(float* y, float v, size_t n) {
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) y[i] = v;
}

void copy(const float* x, float* y, size_t n) {
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) y[i] = x[i];
}

void saxpy(float a, const float* x, float* y, size_t n) {
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

void triad(float* a, const float* b, const float* c, float s, size_t n) {
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}

double sum(const float* x, size_t n) {
  float s = 0;
#pragma omp parallel reduction(+ : s)
  {
    const size_t t = size_t(omp_get_thread_num()), count = size_t(omp_get_num_threads());
    s += fold<float>(
        n * t / count, n * (t + 1) / count, 0, [&](size_t i) { return load(x + i); },
        [&](size_t i) { return x[i]; }, [](auto a, auto b) { return a + b; });
  }
  return s;
}

void stencil(const float* u, float* v, int n) {
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++) {
      size_t k = size_t(i) * n + j;
      v[k] = 0.25f * (u[k - n] + u[k + n] + u[k - 1] + u[k + 1]);
    }
}

void nbody(const float* x, const float* y, const float* z, float* vx, float* vy, float* vz,
           float dt, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    float ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
    for (int j = 0; j < n; j++) {
      float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
      float r2 = dx * dx + dy * dy + dz * dz + 1e-9f;
      float inv = 1.0f / std::sqrt(r2);
      float w = inv * inv * inv;
      ax += dx * w, ay += dy * w, az += dz * w;
    }
    vx[i] += dt * ax, vy[i] += dt * ay, vz[i] += dt * az;
  }
}

namespace {
/// Rounds of z² + c until |z| ≥ 2 for 16 points at once, `limit` at most; lanes that have ended
/// keep their count, whatever becomes of them: of NaN -ffast-math says nothing.
inline Wide<int32_t> rounds_of(Wide<float> zr, Wide<float> zi, Wide<float> cr, Wide<float> ci,
                               int limit) {
  Wide<int32_t> count = {}, inside = ~Wide<int32_t>{};  // -1 where true
  for (int k = 0; k < limit; k++) {
    const Wide<float> rr = zr * zr, ii = zi * zi;
    inside &= rr + ii < 4.0f;
    count -= inside;
    int32_t any = 0;
    for (int l = 0; l < 16; l++) any |= inside[l];
    if (!any) break;
    zi = 2.0f * zr * zi + ci;
    zr = rr - ii + cr;
  }
  return count;
}

/// Calls f(i, first, lanes used) for the rows of n × n points in groups of 16.
template <class F>
void groups(int n, const F& f) {
#pragma omp parallel for schedule(dynamic, 8)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j += 16) f(i, j, n - j < 16 ? n - j : 16);
}

inline Wide<float> numbers_from(int first) {
  Wide<float> v;
  for (int l = 0; l < 16; l++) v[l] = float(first + l);
  return v;
}
}  // namespace

void mandelbrot(int* count, int n, int rounds) {
  groups(n, [&](int i, int j, int used) {
    const Wide<float> cr = -2.0f + 3.0f * numbers_from(j) / float(n),
                      ci = Wide<float>{} + (-1.5f + 3.0f * float(i) / float(n));
    const Wide<int32_t> found = rounds_of(Wide<float>{}, Wide<float>{}, cr, ci, rounds);
    for (int l = 0; l < used; l++) count[size_t(i) * n + j + l] = found[l];
  });
}

void julia(int* count, int n, float re, float im, int rounds) {
  groups(n, [&](int i, int j, int used) {
    const Wide<float> zr = -1.5f + 3.0f * numbers_from(j) / float(n),
                      zi = Wide<float>{} + (-1.5f + 3.0f * float(i) / float(n));
    const Wide<int32_t> found = rounds_of(zr, zi, Wide<float>{} + re, Wide<float>{} + im, rounds);
    for (int l = 0; l < used; l++) count[size_t(i) * n + j + l] = found[l];
  });
}

namespace {
/// Normal distribution, Abramowitz & Stegun 26.2.17 (|error| < 7.5e-8).
template <class T>
inline T normal(T x) {
  const T k = 1 / (1 + T(0.2316419) * std::fabs(x));
  const T poly =
      k *
      (T(0.319381530) +
       k * (T(-0.356563782) + k * (T(1.781477937) + k * (T(-1.821255978) + k * T(1.330274429)))));
  const T tail = T(0.3989422804014327) * std::exp(T(-0.5) * x * x) * poly;
  return x >= 0 ? 1 - tail : tail;
}

template <class T>
void prices(const T* spot, const T* strike, const T* years, T* call, T* put, size_t n) {
  const T rate = T(0.02), sigma = T(0.3);
#pragma omp parallel for simd
  for (size_t i = 0; i < n; i++) {
    const T root = std::sqrt(years[i]);
    const T d1 = (std::log(spot[i] / strike[i]) + (rate + T(0.5) * sigma * sigma) * years[i]) /
                 (sigma * root);
    const T d2 = d1 - sigma * root;
    const T discounted = strike[i] * std::exp(-rate * years[i]);
    const T n1 = normal(d1), n2 = normal(d2);
    call[i] = spot[i] * n1 - discounted * n2;
    put[i] = discounted * (1 - n2) - spot[i] * (1 - n1);
  }
}
}  // namespace

void black_scholes(const float* spot, const float* strike, const float* years, float* call,
                   float* put, size_t n) {
  prices(spot, strike, years, call, put, n);
}
void black_scholes(const double* spot, const double* strike, const double* years, double* call,
                   double* put, size_t n) {
  prices(spot, strike, years, call, put, n);
}

void life(const int32_t* a, int32_t* b, int n) {
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++) {
      const int32_t *p = a + size_t(i - 1) * n + j, *q = p + n, *r = q + n;
      int alive = p[-1] + p[0] + p[1] + q[-1] + q[1] + r[-1] + r[0] + r[1];
      b[size_t(i) * n + j] = alive == 3 || (alive == 2 && q[0] == 1);
    }
}

namespace {
constexpr int lanes = 16, chains = 12;
volatile float fma_sink;
}  // namespace

double fma_flops(int rounds) { return 2.0 * rounds * lanes * chains * omp_get_max_threads(); }

void fma_rounds(int rounds) {
  // The start is unknown to the compiler, and every lane of every chain is used: nothing folds
  // away.
  static volatile float start = 1.0f;
#pragma omp parallel
  {
    typedef float Vector __attribute__((vector_size(lanes * sizeof(float))));
    Vector v[chains];
    for (int c = 0; c < chains; c++)
      for (int l = 0; l < lanes; l++) v[c][l] = start * float(c * lanes + l);
    Vector a = Vector{} + start * 0.999f, b = Vector{} + start * 0.001f;
    for (int k = 0; k < rounds; k++)
      for (int c = 0; c < chains; c++) v[c] = v[c] * a + b;
    float total = 0;
    for (int c = 0; c < chains; c++)
      for (int l = 0; l < lanes; l++) total += v[c][l];
#pragma omp critical
    fma_sink = total;
  }
}

}  // namespace bench::reference
