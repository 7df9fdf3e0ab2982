#pragma once
// 2D MLS-MPM with three materials: an elastic solid, a fluid and snow.
//
// Hu et al., "A Moving Least Squares Material Point Method with Displacement Discontinuity and
// Two-Way Rigid Body Coupling", SIGGRAPH 2018; snow plasticity from Stomakhin et al., "A Material
// Point Method for Snow Simulation", SIGGRAPH 2013. Quadratic B-splines, explicit steps, the unit
// square as domain.
#include <quern/quern.h>

#include <vector>

#include "examples/image.h"

namespace examples {

inline constexpr int elastic = 0, fluid = 1, snow = 2;  ///< materials

struct Particles {
  std::vector<float> x, y;  ///< positions in the unit square, y upwards
  std::vector<int> material;
};

/// One particle for each coloured pixel: red is elastic, blue fluid, white snow, dark empty. The
/// image covers the unit square less a margin of the solver's boundary. Throws quern::Error where
/// none is coloured.
Particles particles_from(const Image& image);

class Mpm2d {
 public:
  /// n_grid² cells; time step in seconds. Everything lies on `device`.
  Mpm2d(const quern::Device& device, const Particles& start, int n_grid = 128, float dt = 1e-4f);

  /// Advances by `count` steps; asynchronous.
  void advance(int count);
  int particles() const { return count_; }
  float dt() const { return dt_; }
  Particles positions() const;
  /// Particles drawn in their material's colour.
  Image draw(int width) const;

  struct Totals {
    double mass = 0;                ///< on the grid after the last scatter
    double momentum_y = 0;          ///< of the particles, per unit mass
    double mean_y = 0;              ///< centre of mass
    float lowest = 0, highest = 0;  ///< extremes over both coordinates
  };
  Totals totals();
  static constexpr float gravity = 20.0f;

 private:
  int n_grid_, count_;
  float dt_;
  quern::Field<float> x_, y_, vx_, vy_, c00_, c01_, c10_, c11_, f00_, f01_, f10_, f11_, jp_;
  quern::Field<int> material_;
  quern::Field<float, 2> grid_x_, grid_y_, grid_m_;
  quern::Kernel<void()> substep_;
};

}  // namespace examples
