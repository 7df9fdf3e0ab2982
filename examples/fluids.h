#pragma once
// Stable fluids: incompressible flow in a periodic square.
#include <quern/quern.h>

#include "examples/grids.h"

namespace examples {

/// Stam, "Stable Fluids", SIGGRAPH 1999: semi-Lagrangian advection (paths by the midpoint rule,
/// values by Catmull-Rom splines), implicit diffusion and projection, both by Jacobi's iteration,
/// on a staggered grid (Harlow & Welch 1965). The square has side 1 and its opposite sides are one;
/// velocities are in sides a second.
class Fluids {
 public:
  struct Setup {
    float dt = 0.005f;    ///< seconds
    float viscosity = 0;  ///< sides² a second
    int projection = 60;  ///< Jacobi's iterations, an even number
    int diffusion = 20;   ///< likewise
  };
  /// A square of cells at rest without dye. Throws quern::Error for an odd number of iterations.
  Fluids(const Grid<2>& plane, const Setup& setup, quern::Loc loc = quern::Loc::here());

  /// Carries velocity and dye along, diffuses, projects: `count` steps; asynchronous.
  void advance(int count);
  // The parts of a step.
  void carry_velocity();
  void carry_dye();
  void diffuse() { diffuse_(); }
  /// Takes away the gradient that leaves the least divergence.
  void project() { project_(); }

  /// Element (i, j) holds x across the face at (j, i + 1/2) and y across that at (j + 1/2, i), in
  /// cells: x to the right, y upwards.
  quern::Field<quern::lang::vec2, 2> velocity;
  quern::Field<float, 2> dye;  ///< at the cells' centres (j + 1/2, i + 1/2)

 private:
  int n_;
  Setup setup_;
  quern::Field<quern::lang::vec2, 2> next_velocity_, old_velocity_;
  quern::Field<float, 2> next_dye_, pressure_, next_pressure_, divergence_;
  quern::Kernel<void()> carry_velocity_, carry_dye_, diffuse_, project_;
};

}  // namespace examples
