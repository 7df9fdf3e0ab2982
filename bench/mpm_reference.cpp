#include "bench/mpm_reference.h"

#include <omp.h>

#include <cstring>

namespace bench::reference {

namespace {

typedef float Node __attribute__((vector_size(16)));

inline Node load(const float* at) {
  Node v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
inline void store(float* at, Node v) { std::memcpy(at, &v, sizeof v); }

/// The three nodes around a position along an axis: the first, the distance from it in cells, and
/// their weights.
struct Spline {
  int base;
  float f, w[3];
  Spline(float x, float inv_dx) {
    const float at = x * inv_dx;
    base = int(at - 0.5f);
    f = at - float(base);
    w[0] = 0.5f * (1.5f - f) * (1.5f - f);
    w[1] = 0.75f - (f - 1) * (f - 1);
    w[2] = 0.5f * (f - 0.5f) * (f - 0.5f);
  }
};

/// Clears all grids: those of the threads follow each other.
void clear(float (*node)[4], std::size_t nodes) {
#pragma omp parallel
  std::memset(node + std::size_t(omp_get_thread_num()) * nodes, 0, nodes * sizeof *node);
}

/// What all threads have put into node k.
inline Node total(const float (*node)[4], std::size_t nodes, std::size_t k, int threads) {
  Node sum = load(node[k]);
  for (int t = 1; t < threads; t++) sum += load(node[std::size_t(t) * nodes + k]);
  return sum;
}

/// No velocity out of the walls, which are 3 nodes thick.
inline float inside(float v, int index, int n) {
  if (index < 3 && v < 0) return 0;
  if (index > n - 3 && v > 0) return 0;
  return v;
}

}  // namespace

void mpm_substep(const Mpm& s) {
  const int n = s.n_grid, threads = omp_get_max_threads();
  const float dx = 1.0f / float(n), inv_dx = float(n), dt = step_per_cell * dx, gravity = 9.8f,
              e = 400;
  const float p_vol = dx * 0.5f * dx * 0.5f, p_mass = p_vol;
  const std::size_t nodes = std::size_t(n) * n;
  clear(s.node, nodes);
#pragma omp parallel
  {
    float(*node)[4] = s.node + std::size_t(omp_get_thread_num()) * nodes;
#pragma omp for
    for (int p = 0; p < s.particles; p++) {
      const Spline bx(s.x[p], inv_dx), by(s.y[p], inv_dx);
      const float stress = -dt * 4 * e * p_vol * (s.j[p] - 1) * inv_dx * inv_dx;
      const Node at_rest = {p_mass * s.vx[p], p_mass * s.vy[p], p_mass, 0};
      const Node along_x = {stress + p_mass * s.c00[p], p_mass * s.c10[p], 0, 0};
      const Node along_y = {p_mass * s.c01[p], stress + p_mass * s.c11[p], 0, 0};
      for (int i = 0; i < 3; i++) {
        const Node row = at_rest + (float(i) - bx.f) * dx * along_x;
        float* to = node[std::size_t(bx.base + i) * n + by.base];
        for (int j = 0; j < 3; j++)
          store(to + 4 * j,
                load(to + 4 * j) + bx.w[i] * by.w[j] * (row + (float(j) - by.f) * dx * along_y));
      }
    }
#pragma omp for
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        const std::size_t k = std::size_t(i) * n + j;
        const Node sum = total(s.node, nodes, k, threads);
        if (sum[2] <= 0) continue;
        const float vx = inside(sum[0] / sum[2], i, n),
                    vy = inside(sum[1] / sum[2] - dt * gravity, j, n);
        store(s.node[k], Node{vx, vy, sum[2], 0});
      }
#pragma omp for
    for (int p = 0; p < s.particles; p++) {
      const Spline bx(s.x[p], inv_dx), by(s.y[p], inv_dx);
      Node v = {}, cx = {}, cy = {};
      for (int i = 0; i < 3; i++) {
        const float* from = s.node[std::size_t(bx.base + i) * n + by.base];
        for (int j = 0; j < 3; j++) {
          const Node u = bx.w[i] * by.w[j] * load(from + 4 * j);
          v += u;
          cx += (float(i) - bx.f) * u;
          cy += (float(j) - by.f) * u;
        }
      }
      cx *= 4 * inv_dx, cy *= 4 * inv_dx;
      s.vx[p] = v[0], s.vy[p] = v[1];
      s.c00[p] = cx[0], s.c01[p] = cy[0], s.c10[p] = cx[1], s.c11[p] = cy[1];
      s.x[p] += dt * v[0], s.y[p] += dt * v[1];
      s.j[p] *= 1 + dt * (cx[0] + cy[1]);
    }
  }
}

void mpm3d_substep(const Mpm3d& s) {
  const int n = s.n_grid, threads = omp_get_max_threads();
  const float dx = 1.0f / float(n), inv_dx = float(n), dt = 8e-5f, gravity = 9.8f, young = 400;
  const float volume = 0.25f * dx * dx, mass = volume;
  const float stiffness = dt * 4 * young * volume * inv_dx * inv_dx;
  const std::size_t nodes = std::size_t(n) * n * n;
  clear(s.node, nodes);
#pragma omp parallel
  {
    float(*node)[4] = s.node + std::size_t(omp_get_thread_num()) * nodes;
#pragma omp for
    for (std::size_t k = 0; k < s.particles; k++) {
      const FluidParticle& p = s.particle[k];
      const Spline b[3] = {{p.x[0], inv_dx}, {p.x[1], inv_dx}, {p.x[2], inv_dx}};
      const Node at_rest = {mass * p.v[0], mass * p.v[1], mass * p.v[2], mass};
      Node along[3];
      for (int d = 0; d < 3; d++) {
        along[d] = Node{mass * p.c[0][d], mass * p.c[1][d], mass * p.c[2][d], 0};
        along[d][d] -= stiffness * (p.j - 1);
        along[d] *= dx;
      }
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          const Node row =
              at_rest + (float(i) - b[0].f) * along[0] + (float(j) - b[1].f) * along[1];
          const float w = b[0].w[i] * b[1].w[j];
          float* to = node[(std::size_t(b[0].base + i) * n + (b[1].base + j)) * n + b[2].base];
          for (int l = 0; l < 3; l++)
            store(to + 4 * l,
                  load(to + 4 * l) + w * b[2].w[l] * (row + (float(l) - b[2].f) * along[2]));
        }
    }
#pragma omp for
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        for (int l = 0; l < n; l++) {
          const std::size_t k = (std::size_t(i) * n + j) * n + l;
          const Node sum = total(s.node, nodes, k, threads);
          if (sum[3] <= 0) continue;
          const Node v = sum / sum[3];
          store(s.node[k], Node{inside(v[0], i, n), inside(v[1] - dt * gravity, j, n),
                                inside(v[2], l, n), sum[3]});
        }
#pragma omp for
    for (std::size_t k = 0; k < s.particles; k++) {
      FluidParticle& p = s.particle[k];
      const Spline b[3] = {{p.x[0], inv_dx}, {p.x[1], inv_dx}, {p.x[2], inv_dx}};
      Node v = {}, c[3] = {};
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          const float w = b[0].w[i] * b[1].w[j];
          const float* from =
              s.node[(std::size_t(b[0].base + i) * n + (b[1].base + j)) * n + b[2].base];
          Node row = {};
          for (int l = 0; l < 3; l++) {
            const Node u = w * b[2].w[l] * load(from + 4 * l);
            row += u;
            c[2] += (float(l) - b[2].f) * u;
          }
          v += row;
          c[0] += (float(i) - b[0].f) * row;
          c[1] += (float(j) - b[1].f) * row;
        }
      for (int d = 0; d < 3; d++) c[d] *= 4 * inv_dx;
      for (int a = 0; a < 3; a++) {
        p.v[a] = v[a];
        p.x[a] += dt * v[a];
        for (int d = 0; d < 3; d++) p.c[a][d] = c[d][a];
      }
      p.j *= 1 + dt * (c[0][0] + c[1][1] + c[2][2]);
    }
  }
}

}  // namespace bench::reference
