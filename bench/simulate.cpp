// Whole steps of simulations: MLS-MPM in 2D (mpm88) and 3D (mpm3d.cpp), the Game of Life (cells.cpp:
// on bytes), and D3Q19 (lattice.cpp).
#include <quern/host.h>

#include <array>
#include <cmath>
#include <vector>

#include "bench/cells.h"
#include "bench/harness.h"
#include "bench/lattice.h"
#include "bench/mpm3d.h"
#include "bench/mpm_reference.h"
#include "bench/pages.h"
#include "bench/reference.h"

namespace bench {
namespace qn = quern;
using namespace qn::lang;

namespace {
/// Bytes a particle and substep must move at least: 9 floats read and written twice, plus its share
/// of the grid.
double mpm_bytes(int particles, int n_grid) {
  return 2.0 * 2 * 36 * particles + 5.0 * 12 * n_grid * n_grid;
}

void mpm(Report& report, int n_grid, int particles) {
  qn::Device& device = report.device();
  std::vector<Array<float>> host(9, Array<float>(size_t(particles)));
  Array<float> nodes(size_t(threads()) * n_grid * n_grid * 4);
  auto start = [&](int c) -> Array<float>& {
    // A regular block of fluid in the middle, so that particles are neither sorted nor random.
    int side = 1;
    while (side * side < particles) side++;
    for (int p = 0; p < particles; p++) {
      float u = float(c == 0 ? p % side : p / side) / float(side);
      host[size_t(c)][size_t(p)] = c < 2 ? 0.3f + 0.4f * u : c == 8 ? 1.0f : 0.0f;
    }
    return host[size_t(c)];
  };
  using F = qn::Field<float>;
  F x{device, {particles}}, y{device, {particles}}, vx{device, {particles}},
      vy{device, {particles}};
  F c00{device, {particles}}, c01{device, {particles}}, c10{device, {particles}},
      c11{device, {particles}}, J{device, {particles}};
  qn::Field<float, 2> gx{device, {n_grid, n_grid}}, gy{device, {n_grid, n_grid}},
      gm{device, {n_grid, n_grid}};
  const F* fields[] = {&x, &y, &vx, &vy, &c00, &c01, &c10, &c11, &J};
  auto restart = [&] {
    for (int c = 0; c < 9; c++) fields[c]->copy_from(start(c).data(), particles);
  };
  restart();

  const float dx = 1.0f / float(n_grid), inv_dx = float(n_grid), dt = reference::step_per_cell * dx,
              e = 400, gravity = 9.8f;
  const float p_vol = dx * 0.5f * dx * 0.5f, p_mass = p_vol;
  auto weights = [](F32 f) {
    auto a = 1.5f - f, b = f - 1, c = f - 0.5f;
    return std::array<F32, 3>{0.5f * a * a, 0.75f - b * b, 0.5f * c * c};
  };
  qn::Kernel substep = [&] {
    for (auto I : gm) {
      gx[I] = 0;
      gy[I] = 0;
      gm[I] = 0;
    }
    for (auto p : x) {
      auto px = x[p] * inv_dx, py = y[p] * inv_dx;
      auto bx = cast<int>(px - 0.5f), by = cast<int>(py - 0.5f);
      auto fx = px - cast<float>(bx), fy = py - cast<float>(by);
      auto wx = weights(fx), wy = weights(fy);
      auto stress = -dt * 4 * e * p_vol * (J[p] - 1) * inv_dx * inv_dx;
      auto a00 = stress + p_mass * c00[p], a01 = p_mass * c01[p];
      auto a10 = p_mass * c10[p], a11 = stress + p_mass * c11[p];
      auto mvx = p_mass * vx[p], mvy = p_mass * vy[p];
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          auto dpx = (float(i) - fx) * dx, dpy = (float(j) - fy) * dx,
               w = wx[size_t(i)] * wy[size_t(j)];
          gx(bx + i, by + j) += w * (mvx + a00 * dpx + a01 * dpy);
          gy(bx + i, by + j) += w * (mvy + a10 * dpx + a11 * dpy);
          gm(bx + i, by + j) += w * p_mass;
        }
    }
    for (auto [i, j] : gm) {
      If(gm(i, j) > 0) {
        Var<float> u = gx(i, j) / gm(i, j), v = gy(i, j) / gm(i, j) - dt * gravity;
        If(i < 3 && u < 0) u = 0;
        If(i > n_grid - 3 && u > 0) u = 0;
        If(j < 3 && v < 0) v = 0;
        If(j > n_grid - 3 && v > 0) v = 0;
        gx(i, j) = u;
        gy(i, j) = v;
      }
    }
    for (auto p : x) {
      auto px = x[p] * inv_dx, py = y[p] * inv_dx;
      auto bx = cast<int>(px - 0.5f), by = cast<int>(py - 0.5f);
      auto fx = px - cast<float>(bx), fy = py - cast<float>(by);
      auto wx = weights(fx), wy = weights(fy);
      Var<float> u = 0, v = 0, d00 = 0, d01 = 0, d10 = 0, d11 = 0;
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
          auto dpx = (float(i) - fx) * dx, dpy = (float(j) - fy) * dx,
               w = wx[size_t(i)] * wy[size_t(j)];
          auto qx = gx(bx + i, by + j), qy = gy(bx + i, by + j);
          auto q = 4 * w * inv_dx * inv_dx;
          u += w * qx;
          v += w * qy;
          d00 += q * qx * dpx;
          d01 += q * qx * dpy;
          d10 += q * qy * dpx;
          d11 += q * qy * dpy;
        }
      vx[p] = u;
      vy[p] = v;
      c00[p] = d00;
      c01[p] = d01;
      c10[p] = d10;
      c11[p] = d11;
      x[p] = x[p] + dt * u;
      y[p] = y[p] + dt * v;
      J[p] = J[p] * (1 + dt * (d00 + d11));
    }
  };
  const reference::Mpm state{
      n_grid,         particles,      host[0].data(), host[1].data(),
      host[2].data(), host[3].data(), host[4].data(), host[5].data(),
      host[6].data(), host[7].data(), host[8].data(), reinterpret_cast<float(*)[4]>(nodes.data())};
  double bytes = mpm_bytes(particles, n_grid);
  report.run({"mpm88", std::to_string(particles), bytes, 0,
              [&] {
                substep();
                report.complete();
              },
              [&] { reference::mpm_substep(state); }, report.bandwidth(bytes)});
  // The two must do the same.
  restart();
  substep();
  reference::mpm_substep(state);
  for (size_t c = 0; c < 9; c++) {
    const std::vector<float> found = qn::to_vector(*fields[c]);
    for (size_t p = 0; p < found.size(); p++)
      if (!(std::abs(found[p] - host[c][p]) <= 1e-5f * (1 + std::abs(host[c][p]))))
        throw qn::Error("mpm88 and its reference differ at particle " + std::to_string(p));
  }
}

void life(Report& report, int n) {
  qn::Device& device = report.device();
  qn::Field<int, 2> a{device, {n, n}}, b{device, {n, n}};
  Array<int32_t> p(size_t(n) * n), q(size_t(n) * n);
  for (size_t k = 0; k < p.size(); k++) p[k] = int32_t(uint32_t(k) * 2654435761u >> 31);
  a.copy_from(p.data(), int64_t(p.size()));
  qn::Kernel step = [&] {
    for (auto [i, j] : grid(a.dim(0) - 2, a.dim(1) - 2)) {
      Var<int> alive = 0;
      for (int di = 0; di <= 2; di++)
        for (int dj = 0; dj <= 2; dj++)
          if (di != 1 || dj != 1) alive += a(i + di, j + dj);
      b(i + 1, j + 1) = select(alive == 3 || (alive == 2 && a(i + 1, j + 1) == 1), 1, 0);
    }
  };
  double bytes = 8.0 * n * n;
  report.run({"life", std::to_string(n) + "^2", bytes, 0,
              [&] {
                step();
                report.complete();
              },
              [&] { reference::life(p.data(), q.data(), n); }, report.bandwidth(bytes)});
}
}  // namespace

void simulate(Report& report) {
  mpm(report, 128, 8192);
  mpm(report, 512, 131072);
  mpm3d(report);
  life(report, 2048);
  cells(report);
  lattice(report);
}

}  // namespace bench
