#pragma once
// Which waves come together to a picture?
//
// After `wave` of Hu et al., "DiffTaichi: Differentiable Programming for Physical Simulation", ICLR
// 2020: the wave equation on a square that is held at its border, by leapfrog steps of c² dt² = dx²/3.
// What is looked for is the height field that, let go at rest, is the target some steps later.
#include "examples/differentiable/descent.h"

namespace examples {

/// Real: float or double.
template <class Real>
class DiffWave {
 public:
  struct Setup {
    int side = 256;  ///< cells
    int steps = 256;
    /// Of gradient descent, for a square of one cell. Losses fall for certain below 1/3.
    double rate = 0.3;
  };
  /// The target is a drawing of a ring and bars.
  DiffWave(const quern::Device& device, const Setup& setup);

  /// The integral of (height - target)² behind the last step, over a square of side 1.
  double loss();
  /// Leaves the gradient in start.grad().
  double loss_and_gradient();
  void step() { descent_.step(setup_.rate * setup_.side * setup_.side); }

  quern::Field<Real, 2> start, target;  ///< heights; start is 0
  /// Heights behind the last step of the latest loss.
  const quern::Field<Real, 2>& reached() const { return setup_.steps % 2 == 0 ? even_ : odd_; }

 private:
  void forward();

  Setup setup_;
  quern::Field<Real, 2> even_, odd_;  ///< states with these numbers
  quern::Field<Real, 0> loss_;
  quern::Kernel<void()> begin_;
  quern::Kernel<void(quern::Field<Real, 2>, quern::Field<Real, 2>)> advance_;
  quern::Kernel<void(quern::Field<Real, 2>)> measure_;
  GradientDescent<Real, 2> descent_;
};

extern template class DiffWave<float>;
extern template class DiffWave<double>;

}  // namespace examples
