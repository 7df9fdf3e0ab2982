#include "bench/mpm3d.h"

namespace bench::reference {

namespace {

struct Spline {
  int base[3];
  float f[3], w[3][3];
  Spline(const FluidParticle& p, float inv_dx) {
    for (int a = 0; a < 3; a++) {
      const float x = p.x[a] * inv_dx;
      base[a] = int(x - 0.5f);
      f[a] = x - float(base[a]);
      w[0][a] = 0.5f * (1.5f - f[a]) * (1.5f - f[a]);
      w[1][a] = 0.75f - (f[a] - 1) * (f[a] - 1);
      w[2][a] = 0.5f * (f[a] - 0.5f) * (f[a] - 0.5f);
    }
  }
};

}  // namespace

void mpm3d_substep(const Mpm3d& s) {
  const int n = s.n_grid;
  const float dx = 1.0f / float(n), inv_dx = float(n), dt = 8e-5f, gravity = 9.8f, young = 400;
  const float volume = 0.25f * dx * dx, mass = volume;
  const float stiffness = dt * 4 * young * volume * inv_dx * inv_dx;
  const std::size_t nodes = std::size_t(n) * n * n;
#pragma omp parallel for
  for (std::size_t k = 0; k < nodes; k++)
    for (int a = 0; a < 4; a++) s.node[k][a] = 0;
#pragma omp parallel for
  for (std::size_t k = 0; k < s.particles; k++) {
    const FluidParticle& p = s.particle[k];
    const Spline b(p, inv_dx);
    float affine[3][3];
    for (int a = 0; a < 3; a++)
      for (int c = 0; c < 3; c++)
        affine[a][c] = mass * p.c[a][c] - (a == c ? stiffness * (p.j - 1) : 0);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        for (int l = 0; l < 3; l++) {
          const float w = b.w[i][0] * b.w[j][1] * b.w[l][2];
          const float away[3] = {(float(i) - b.f[0]) * dx, (float(j) - b.f[1]) * dx,
                                 (float(l) - b.f[2]) * dx};
          float* node =
              s.node[(std::size_t(b.base[0] + i) * n + (b.base[1] + j)) * n + (b.base[2] + l)];
          for (int a = 0; a < 3; a++) {
            const float push = w * (mass * p.v[a] + affine[a][0] * away[0] +
                                    affine[a][1] * away[1] + affine[a][2] * away[2]);
#pragma omp atomic
            node[a] += push;
          }
#pragma omp atomic
          node[3] += w * mass;
        }
  }
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int l = 0; l < n; l++) {
        float* node = s.node[(std::size_t(i) * n + j) * n + l];
        if (node[3] <= 0) continue;
        const int index[3] = {i, j, l};
        for (int a = 0; a < 3; a++) {
          float v = node[a] / node[3] - (a == 1 ? dt * gravity : 0);
          if (index[a] < 3 && v < 0) v = 0;
          if (index[a] > n - 3 && v > 0) v = 0;
          node[a] = v;
        }
      }
#pragma omp parallel for
  for (std::size_t k = 0; k < s.particles; k++) {
    FluidParticle& p = s.particle[k];
    const Spline b(p, inv_dx);
    float v[3] = {}, c[3][3] = {};
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        for (int l = 0; l < 3; l++) {
          const float w = b.w[i][0] * b.w[j][1] * b.w[l][2];
          const float away[3] = {float(i) - b.f[0], float(j) - b.f[1], float(l) - b.f[2]};
          const float* node =
              s.node[(std::size_t(b.base[0] + i) * n + (b.base[1] + j)) * n + (b.base[2] + l)];
          for (int a = 0; a < 3; a++) {
            const float u = w * node[a];
            v[a] += u;
            for (int d = 0; d < 3; d++) c[a][d] += 4 * inv_dx * u * away[d];
          }
        }
    for (int a = 0; a < 3; a++) {
      p.v[a] = v[a];
      p.x[a] += dt * v[a];
      for (int d = 0; d < 3; d++) p.c[a][d] = c[a][d];
    }
    p.j *= 1 + dt * (c[0][0] + c[1][1] + c[2][2]);
  }
}

}  // namespace bench::reference
