#pragma once
// 2D MLS-MPM with three materials: an elastic solid, a fluid and snow.
//
// Hu et al., "A Moving Least Squares Material Point Method with Displacement Discontinuity and
// Two-Way Rigid Body Coupling", SIGGRAPH 2018; snow plasticity from Stomakhin et al., "A Material
// Point Method for Snow Simulation", SIGGRAPH 2013. Quadratic B-splines, explicit steps, the unit
// square as domain, or on a tree one of any size, whose nodes are made anew in each step.
#include <quern/quern.h>

#include <cstdint>
#include <vector>

#include "examples/grids.h"

namespace examples {

using Picture =
    quern::Field<quern::Vec<uint8_t, 3>, 2>;  ///< {height, width} RGB, rows from the top

inline constexpr int elastic = 0, fluid = 1, snow = 2;  ///< materials

struct Particles {
  std::vector<quern::lang::vec2> x;  ///< positions in the unit square, y upwards
  std::vector<int> material;
};

/// One particle for each coloured pixel: red is elastic, blue fluid, white snow, dark empty. The
/// picture covers the unit square less a margin of the solver's boundary. Throws quern::Error where
/// none is coloured.
Particles particles_from(const Picture& picture, quern::Loc loc = quern::Loc::here());

class Mpm2d {
 public:
  /// n_grid² cells; time step in seconds. Everything lies on `device`.
  Mpm2d(const quern::Device& device, const Particles& start, int n_grid = 128, float dt = 1e-4f);
  /// n_grid cells to a length of 1, as many as the grid has along each axis.
  Mpm2d(const Grid<2>& square, const Particles& start, int n_grid = 128, float dt = 1e-4f);

  /// Advances by `count` steps; asynchronous.
  void advance(int count);
  int particles() const { return count_; }
  float dt() const { return dt_; }
  Particles positions() const;
  /// Particles drawn in their material's colour into width² pixels.
  Picture draw(int width) const;

  struct Totals {
    double mass = 0;                ///< on the grid after the last scatter
    double momentum_y = 0;          ///< of the particles, per unit mass
    double mean_y = 0;              ///< centre of mass
    float lowest = 0, highest = 0;  ///< extremes over both coordinates
  };
  Totals totals();
  static constexpr float gravity = 20.0f;

 private:
  Grid<2> grid_;
  int n_grid_, count_;
  float dt_;
  quern::Field<quern::lang::vec2> x_, v_;
  quern::Field<quern::lang::mat2> affine_, deformation_;
  quern::Field<float> plastic_volume_;
  quern::Field<int> material_;
  quern::Field<quern::lang::vec2, 2> velocity_;  ///< of the grid; at first the momentum
  quern::Field<float, 2> mass_;
  quern::Kernel<void()> substep_;
  quern::Kernel<void(quern::Field<int, 2>, Picture)> draw_;
};

}  // namespace examples
