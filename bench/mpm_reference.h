#pragma once
// MLS-MPM of a fluid in two and three dimensions (Hu et al. 2018), quadratic kernel. Each thread
// scatters into a grid of its own, four numbers a node in one vector; the grid step adds them up.
#include <cstddef>

namespace bench::reference {

/// Seconds by cell of mpm88: half of what a wave of the fluid, at √(E/ρ) = 20, takes to cross one.
inline constexpr float step_per_cell = 0.025f;

/// mpm88: arrays of particles; as many grids of n_grid² nodes {momentum or velocity, mass, -} as
/// there are threads.
struct Mpm {
  int n_grid, particles;
  float *x, *y, *vx, *vy, *c00, *c01, *c10, *c11, *j;
  float (*node)[4];
};
void mpm_substep(const Mpm& s);

struct FluidParticle {
  float x[3], v[3], c[3][3], j;
};
/// As many grids of n_grid³ nodes {momentum or velocity, mass} as there are threads.
struct Mpm3d {
  int n_grid;
  std::size_t particles;
  FluidParticle* particle;
  float (*node)[4];
};
/// A substep of examples/mpm3d.h.
void mpm3d_substep(const Mpm3d& s);

}  // namespace bench::reference
