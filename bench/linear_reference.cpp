#include "bench/linear_reference.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/wide.h"

namespace bench::reference {

void multiply(const Csr& a, const float* x, float* y) {
#pragma omp parallel for
  for (int32_t r = 0; r < a.rows; r++) {
    float sum = 0;
    for (int32_t k = a.begin[r]; k < a.begin[r + 1]; k++) sum += a.value[k] * x[a.column[k]];
    y[r] = sum;
  }
}

namespace {
float inner(const float* x, const float* y, int32_t n) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (int32_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}
}  // namespace

void conjugate_gradients(const Csr& a, const float* b, float* x, float* r, float* p, float* q,
                         int iterations) {
  const int32_t n = a.rows;
#pragma omp parallel for simd
  for (int32_t i = 0; i < n; i++) {
    x[i] = 0;
    r[i] = p[i] = b[i];
  }
  float square = inner(r, r, n);
  for (int k = 0; k < iterations; k++) {
    float slope = 0;
#pragma omp parallel for reduction(+ : slope)
    for (int32_t i = 0; i < n; i++) {
      float sum = 0;
      for (int32_t e = a.begin[i]; e < a.begin[i + 1]; e++) sum += a.value[e] * p[a.column[e]];
      q[i] = sum;
      slope += sum * p[i];
    }
    const float step = square / slope;
    float next = 0;
#pragma omp parallel for simd reduction(+ : next)
    for (int32_t i = 0; i < n; i++) {
      x[i] += step * p[i];
      r[i] -= step * q[i];
      next += r[i] * r[i];
    }
    const float turn = next / square;
#pragma omp parallel for simd
    for (int32_t i = 0; i < n; i++) p[i] = r[i] + turn * p[i];
    square = next;
  }
}

// Blocks of 6 rows by 64 columns stay in registers; a panel of 64 columns of b is packed, so that
// it streams from the second-level cache (Goto & van de Geijn 2008).
void matmul(const float* a, const float* b, float* c, int n) {
  constexpr int rows = 6, columns = 64, depth = 512;
#pragma omp parallel
  {
    std::vector<float> panel(size_t(depth) * columns);
#pragma omp for schedule(dynamic)
    for (int j = 0; j < n; j += columns)
      for (int k0 = 0; k0 < n; k0 += depth) {
        const int ks = std::min(depth, n - k0);
        for (int k = 0; k < ks; k++)
          std::memcpy(&panel[size_t(k) * columns], b + size_t(k0 + k) * n + j,
                      columns * sizeof(float));
        for (int i = 0; i < n; i += rows) {
          const int is = std::min(rows, n - i);
          Wide<float> sum[rows][4];
          for (int r = 0; r < is; r++)
            for (int l = 0; l < 4; l++)
              sum[r][l] = k0 ? load(c + size_t(i + r) * n + j + 16 * l) : Wide<float>{};
          auto round = [&](int used) __attribute__((always_inline)) {
            for (int k = 0; k < ks; k++) {
              Wide<float> v[4];
              for (int l = 0; l < 4; l++) v[l] = load(&panel[size_t(k) * columns + 16 * l]);
              for (int r = 0; r < used; r++) {
                const float s = a[size_t(i + r) * n + k0 + k];
                for (int l = 0; l < 4; l++) sum[r][l] += s * v[l];
              }
            }
          };
          if (is == rows)
            round(rows);
          else
            round(is);
          for (int r = 0; r < is; r++)
            for (int l = 0; l < 4; l++) store(c + size_t(i + r) * n + j + 16 * l, sum[r][l]);
        }
      }
  }
}

}  // namespace bench::reference
