#include "bench/lattice.h"

namespace bench::reference {

void lattice_step(const float* __restrict from, float* __restrict to, int n, float rate) {
  const long row = n + 2, plane = row * row, block = plane * row;
#pragma omp parallel for collapse(2)
  for (int k = 1; k <= n; k++)
    for (int j = 1; j <= n; j++) {
      const long first = k * plane + j * row;
#pragma omp simd
      for (long node = first + 1; node <= first + n; node++) {
        float f[19], density = 0, x = 0, y = 0, z = 0;
#pragma GCC unroll 19
        for (long q = 0; q < 19; q++) {
          const Direction& d = d3q19[std::size_t(q)];
          f[q] = from[q * block + node - d.z * plane - d.y * row - d.x];
          density += f[q];
          x += float(d.x) * f[q], y += float(d.y) * f[q], z += float(d.z) * f[q];
        }
        const float whole = 1 + density, inverse = 1 / whole;
        const float u = x * inverse, v = y * inverse, w = z * inverse;
        const float square = 1.5f * (u * u + v * v + w * w);
#pragma GCC unroll 19
        for (long q = 0; q < 19; q++) {
          const Direction& d = d3q19[std::size_t(q)];
          const float s = 3 * (float(d.x) * u + float(d.y) * v + float(d.z) * w);
          const float equilibrium = d.weight * (density + whole * (s + 0.5f * s * s - square));
          to[q * block + node] = f[q] + rate * (equilibrium - f[q]);
        }
      }
    }
}

}  // namespace bench::reference
