#pragma once
// 3D MLS-MPM: a block of a weakly compressible fluid falls into the unit cube.
#include <quern/quern.h>

#include <cstdint>
#include <vector>

#include "examples/grids.h"

namespace examples {

/// A particle of the fluid, on the host (FluidParticle<>) and on the device.
template <class W = quern::HostW>
struct FluidParticle {
  quern::In<W, quern::lang::vec3> x, v;  ///< position, velocity
  quern::In<W, quern::lang::mat3> C;     ///< the velocity's gradient (APIC)
  quern::In<W, float> J;                 ///< volume over volume at rest
};

/// A node of the grid.
template <class W = quern::HostW>
struct FluidNode {
  quern::In<W, quern::lang::vec3> v;  ///< velocity; while particles are scattered, momentum
  quern::In<W, float> mass;
};

/// Hu et al., "A Moving Least Squares Material Point Method with Displacement Discontinuity and
/// Two-Way Rigid Body Coupling", SIGGRAPH 2018, with quadratic B-splines, explicit steps and the
/// pressure young · (1 - J). Lengths in sides of the cube, times in seconds, density 1; the walls
/// are three cells thick and let the fluid slide and part. On a tree the grid may be as large as one
/// likes: it is made anew in each substep, and has memory where particles are. The kernel is the same.
class Mpm3d {
 public:
  using Picture = quern::Field<quern::Vec<uint8_t, 3>, 2>;  ///< {height, width}, rows from the top
  static constexpr float gravity = 9.8f, young = 400, dt = 8e-5f;
  static constexpr int wall = 3;

  /// n_grid³ cells; the particles in the given layout.
  Mpm3d(const quern::Device& device, const std::vector<FluidParticle<>>& start, int n_grid,
        const quern::Layout& layout = {});
  /// n_grid cells to a length of 1, as many as the grid has along each axis.
  Mpm3d(const Grid<3>& box, const std::vector<FluidParticle<>>& start, int n_grid,
        const quern::Layout& layout = {});
  /// n_grid³ / 4 particles, at rest, at random in `corner` + [0, 0.4)³.
  static std::vector<FluidParticle<>> block(int n_grid,
                                            quern::Vec<float, 3> corner = {0.15f, 0.15f, 0.15f});

  /// Advances by `count` substeps of dt; asynchronous.
  void advance(int count);
  int64_t size() const { return particles.size(); }
  float particle_mass() const { return mass_of_one_; }
  /// The sum over the grid after the last scatter.
  double mass();
  /// [0, side)³ seen along z into width² pixels, the nearest particle on top, the brighter the faster.
  Picture draw(int width, float side = 1) const;

  quern::Field<FluidParticle<>> particles;

 private:
  Grid<3> grid_;
  int n_grid_;
  float mass_of_one_;
  quern::Field<FluidNode<>, 3> nodes_;  ///< each side by side: a scatter reaches 27 of them
  quern::Kernel<void()> substep_;
  quern::Kernel<void(quern::Field<int, 2>, Picture, quern::lang::F32)> draw_;
};

}  // namespace examples
