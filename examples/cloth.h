#pragma once
// A sheet of cloth falls on a ball: masses and springs.
#include <quern/quern.h>

#include <cstdint>
#include <vector>

namespace examples {

/// Provot, "Deformation Constraints in a Mass-Spring Model to Describe Rigid Cloth Behavior",
/// Graphics Interface 1995: masses on a lattice with springs to the next ones along its lines
/// (structural), across its cells (shear) and to those after the next (bend), damped along their
/// lengths. Semi-implicit Euler steps; metres, seconds, kilograms, newtons.
class Cloth {
 public:
  using Picture = quern::Field<quern::Vec<float, 3>, 2>;  ///< {height, width}, rows from the top

  struct Setup {
    int rows = 64, columns = 64;
    float side = 1;     ///< of the longer edge; lattice lines are equally far apart
    float mass = 0.3f;  ///< of the whole sheet
    float structural = 2000, shear = 1000, bend = 200;  ///< stiffness, newtons a metre
    float damping = 0.1f;                               ///< of a spring, newton seconds a metre
    float drag = 0;                                     ///< of a mass by the air, a second
    float gravity = 9.81f;
    quern::lang::vec3 ball = {0, 0, 0};
    float radius = 0;  ///< no ball
    float dt = 0;      ///< 0 chooses half of what the springs allow
  };
  /// The sheet lies in the plane y = `height`, its middle above the origin.
  Cloth(const quern::Device& device, const Setup& setup, float height);

  /// Holds a mass where it is. Before the first step.
  void pin(int row, int column) { inverse_mass_.set(row, column, 0); }
  /// Advances by `count` steps of dt(); asynchronous.
  void advance(int count);
  float dt() const { return setup_.dt; }
  float spacing() const { return spacing_; }
  /// Of one of the lattice's masses.
  float mass() const { return mass_; }
  /// Kinetic energy and that of height and springs, joules.
  double energy();
  /// Seen from above and in front, lit from the side, in width² pixels.
  Picture draw(int width) const;

  quern::Field<quern::lang::vec3, 2> x, v;

 private:
  quern::Device device_;
  Setup setup_;
  float spacing_, mass_;
  quern::Field<float, 2> inverse_mass_;  ///< 0 holds it
  quern::Field<quern::lang::vec3, 2> force_;
  quern::Kernel<void()> forces_, move_;
  quern::Kernel<void(quern::Field<int, 2>, Picture)> draw_;
};

}  // namespace examples
