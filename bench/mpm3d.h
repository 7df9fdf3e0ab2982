#pragma once
// 3D MLS-MPM of a fluid, for both sides of its benchmark.
#include <cstddef>

namespace bench {

class Report;
void mpm3d(Report& report);

namespace reference {

struct FluidParticle {
  float x[3], v[3], c[3][3], j;
};
/// n_grid³ nodes of {momentum or velocity, mass}.
struct Mpm3d {
  int n_grid;
  std::size_t particles;
  FluidParticle* particle;
  float (*node)[4];
};
/// A substep of examples/mpm3d.h.
void mpm3d_substep(const Mpm3d& s);

}  // namespace reference
}  // namespace bench
