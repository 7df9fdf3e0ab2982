#pragma once
// A dam break in the plane by smoothed particle hydrodynamics (SPH).
#include <quern/quern.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "examples/neighbours.h"

namespace examples {

/// A weakly compressible fluid: Monaghan, "Simulating Free Surface Flows with SPH", J. Comput.
/// Phys. 110 (1994), with densities by summation, the cubic spline (Monaghan & Lattanzio 1985) and
/// walls of particles that stay where they are (Crespo, Gómez-Gesteira & Dalrymple 2007).
/// Metres, seconds, kilograms; symplectic Euler steps.
class Sph {
 public:
  using Picture = quern::Field<quern::Vec<uint8_t, 3>, 2>;  ///< {height, width}, rows from the top

  struct Setup {
    std::vector<quern::lang::vec2> fluid, walls;  ///< positions
    quern::lang::vec2 size;                       ///< of the rectangle from 0 that is searched
    float spacing = 0.02f;                        ///< of the lattice at rest
    float gravity = 9.81f;
    float sound = 60;        ///< speed of it: ten times the flow's keeps the density within 1 %
    float viscosity = 0.1f;  ///< Monaghan's α
  };
  /// Martin & Moyce's experiment (1952): a column one metre wide and two high at the left of a tank
  /// four metres wide.
  static Setup dam_break(float spacing);

  static constexpr float rest_density = 1000;
  /// The smoothing length h in spacings; the kernel ends at 2 h.
  static constexpr float smoothing = 1.3f;

  /// How neighbours are found: by the particles sorted by their cells, or by a list for each cell.
  enum class Search { sorted, lists };
  Sph(const quern::Device& device, const Setup& setup, Search search = Search::sorted);

  /// Advances by `count` steps of dt(); asynchronous.
  void advance(int count);
  /// Densities and pressures where the particles are now; asynchronous.
  void measure();
  float dt() const { return dt_; }
  /// Of a particle: a lattice at rest then has the density at rest.
  float mass() const { return mass_; }
  /// Particles 0 … fluid() - 1 are fluid, the others walls.
  int fluid() const { return fluid_; }
  /// The searched rectangle in `width` columns, the fluid brighter the faster.
  Picture draw(int width) const;

  quern::Field<quern::lang::vec2> x, v;
  quern::Field<float> density, pressure;

 private:
  quern::Device device_;
  Setup setup_;
  int fluid_;
  float h_, mass_, dt_;
  quern::Field<quern::lang::vec2> acceleration_;
  std::unique_ptr<Neighbours> cells_;
  quern::Kernel<void()> densities_, forces_, move_;
  quern::Kernel<void(Picture)> draw_;
};

}  // namespace examples
