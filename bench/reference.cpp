#include "bench/reference.h"

#include <omp.h>

#include <cmath>

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
#pragma omp parallel for simd reduction(+ : s)
  for (size_t i = 0; i < n; i++) s += x[i];
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

void mandelbrot(int* count, int n, int rounds) {
#pragma omp parallel for schedule(dynamic, 8)
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float cr = -2.0f + 3.0f * float(j) / float(n), ci = -1.5f + 3.0f * float(i) / float(n);
      float zr = 0, zi = 0;
      int k = 0;
      while (k < rounds && zr * zr + zi * zi < 4.0f) {
        float t = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = t;
        k++;
      }
      count[size_t(i) * n + j] = k;
    }
}

namespace {
/// Normal distribution, Abramowitz & Stegun 26.2.17 (|error| < 7.5e-8).
inline float normal(float x) {
  float k = 1.0f / (1.0f + 0.2316419f * std::fabs(x));
  float poly =
      k * (0.319381530f +
           k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  float tail = 0.39894228f * std::exp(-0.5f * x * x) * poly;
  return x >= 0 ? 1.0f - tail : tail;
}
}  // namespace

void black_scholes(const float* spot, const float* strike, const float* years, float* call,
                   float* put, size_t n) {
  const float rate = 0.02f, sigma = 0.3f;
#pragma omp parallel for simd
  for (size_t i = 0; i < n; i++) {
    float root = std::sqrt(years[i]);
    float d1 =
        (std::log(spot[i] / strike[i]) + (rate + 0.5f * sigma * sigma) * years[i]) / (sigma * root);
    float d2 = d1 - sigma * root;
    float discounted = strike[i] * std::exp(-rate * years[i]);
    float n1 = normal(d1), n2 = normal(d2);
    call[i] = spot[i] * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - spot[i] * (1.0f - n1);
  }
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

void mpm_substep(const Mpm& s) {
  const float dx = 1.0f / s.n_grid, inv_dx = float(s.n_grid), dt = 2e-4f, gravity = 9.8f, e = 400;
  const float p_vol = dx * 0.5f * dx * 0.5f, p_mass = p_vol;
  const int n = s.n_grid;
#pragma omp parallel for
  for (int k = 0; k < n * n; k++) s.grid_vx[k] = s.grid_vy[k] = s.grid_m[k] = 0;
#pragma omp parallel for
  for (int p = 0; p < s.particles; p++) {
    float px = s.x[p] * inv_dx, py = s.y[p] * inv_dx;
    int bx = int(px - 0.5f), by = int(py - 0.5f);
    float fx = px - float(bx), fy = py - float(by);
    float wx[3] = {0.5f * (1.5f - fx) * (1.5f - fx), 0.75f - (fx - 1) * (fx - 1),
                   0.5f * (fx - 0.5f) * (fx - 0.5f)};
    float wy[3] = {0.5f * (1.5f - fy) * (1.5f - fy), 0.75f - (fy - 1) * (fy - 1),
                   0.5f * (fy - 0.5f) * (fy - 0.5f)};
    float stress = -dt * 4 * e * p_vol * (s.j[p] - 1) * inv_dx * inv_dx;
    float a00 = stress + p_mass * s.c00[p], a01 = p_mass * s.c01[p];
    float a10 = p_mass * s.c10[p], a11 = stress + p_mass * s.c11[p];
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        float dpx = (float(i) - fx) * dx, dpy = (float(j) - fy) * dx, w = wx[i] * wy[j];
        size_t g = size_t(bx + i) * n + (by + j);
#pragma omp atomic
        s.grid_vx[g] += w * (p_mass * s.vx[p] + a00 * dpx + a01 * dpy);
#pragma omp atomic
        s.grid_vy[g] += w * (p_mass * s.vy[p] + a10 * dpx + a11 * dpy);
#pragma omp atomic
        s.grid_m[g] += w * p_mass;
      }
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      size_t g = size_t(i) * n + j;
      if (s.grid_m[g] <= 0) continue;
      float vx = s.grid_vx[g] / s.grid_m[g], vy = s.grid_vy[g] / s.grid_m[g] - dt * gravity;
      if (i < 3 && vx < 0) vx = 0;
      if (i > n - 3 && vx > 0) vx = 0;
      if (j < 3 && vy < 0) vy = 0;
      if (j > n - 3 && vy > 0) vy = 0;
      s.grid_vx[g] = vx, s.grid_vy[g] = vy;
    }
#pragma omp parallel for
  for (int p = 0; p < s.particles; p++) {
    float px = s.x[p] * inv_dx, py = s.y[p] * inv_dx;
    int bx = int(px - 0.5f), by = int(py - 0.5f);
    float fx = px - float(bx), fy = py - float(by);
    float wx[3] = {0.5f * (1.5f - fx) * (1.5f - fx), 0.75f - (fx - 1) * (fx - 1),
                   0.5f * (fx - 0.5f) * (fx - 0.5f)};
    float wy[3] = {0.5f * (1.5f - fy) * (1.5f - fy), 0.75f - (fy - 1) * (fy - 1),
                   0.5f * (fy - 0.5f) * (fy - 0.5f)};
    float vx = 0, vy = 0, c00 = 0, c01 = 0, c10 = 0, c11 = 0;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        float dpx = (float(i) - fx) * dx, dpy = (float(j) - fy) * dx, w = wx[i] * wy[j];
        size_t g = size_t(bx + i) * n + (by + j);
        float gx = s.grid_vx[g], gy = s.grid_vy[g], q = 4 * w * inv_dx * inv_dx;
        vx += w * gx, vy += w * gy;
        c00 += q * gx * dpx, c01 += q * gx * dpy, c10 += q * gy * dpx, c11 += q * gy * dpy;
      }
    s.vx[p] = vx, s.vy[p] = vy;
    s.c00[p] = c00, s.c01[p] = c01, s.c10[p] = c10, s.c11[p] = c11;
    s.x[p] += dt * vx, s.y[p] += dt * vy;
    s.j[p] *= 1 + dt * (c00 + c11);
  }
}

}  // namespace bench::reference
