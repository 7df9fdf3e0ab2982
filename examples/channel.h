#pragma once
// Flow through a channel by the lattice Boltzmann method (D2Q9).
#include <quern/quern.h>

#include <cstdint>

namespace examples {

/// Qian, d'Humières & Lallemand, "Lattice BGK Models for Navier-Stokes Equation", 1992, driven by a
/// constant force (Guo, Zheng & Shi 2002) between two plates, periodic along the channel. Solids
/// reflect half-way between nodes. Lattice units: nodes are 1 apart, a step lasts 1, density is
/// about 1. What is stored are differences from the fluid at rest, which keeps the digits of single
/// precision (Skordos 1993).
class Channel {
 public:
  /// height × width nodes of fluid; `viscosity` is (tau - 1/2) / 3 for the relaxation time tau.
  Channel(const quern::Device& device, int height, int width, float viscosity, float force);

  /// Nodes of rows `i` (0 … height - 1 between the plates) and columns `j`: not 0 is solid. Before
  /// the first step.
  void set_solid(int i, int j) { solid_.set(i + 1, j + 1, 1); }
  /// The parabola of a developed flow with this speed in the middle, instead of rest.
  void start(float speed) { start_(speed); }
  /// Advances by `count` steps; asynchronous.
  void advance(int count);
  /// Of the state measured last, zero in solids: {height, width}; x is along the channel, y across.
  quern::Field<quern::lang::vec2, 2> velocity;
  /// Fills `velocity`; asynchronous.
  void measure() { measure_(); }

 private:
  int height_, width_;
  float rate_, force_;  ///< rate = 1 / tau
  /// Of each of the nine directions, with a frame of one node: plates above and below, copies of
  /// the other end to the left and right.
  quern::Field<float, 3> now_, next_;
  quern::Field<uint8_t, 2> solid_;
  quern::Kernel<void(quern::lang::F32)> start_;
  quern::Kernel<void()> step_, measure_;
};

}  // namespace examples
