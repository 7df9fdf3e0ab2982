#pragma once
// Where to put the cue ball, and how to hit it, so that another ball goes where it should?
//
// The program `billiards` of Hu et al., "DiffTaichi: Differentiable Programming for Physical
// Simulation", ICLR 2020: balls that lose a little speed where they meet. Within its step a collision
// has a time of impact, without which the derivatives of where balls go would have the wrong sign.
#include "examples/differentiable/descent.h"

namespace examples {

/// Real: float or double.
template <class Real>
class DiffBilliards {
 public:
  struct Setup {
    int steps = 1023;    ///< of 3 ms
    double rate = 0.01;  ///< of gradient descent
  };
  /// The cue ball, and ten in a triangle, of which the last one is to go to (0.9, 0.75).
  DiffBilliards(const quern::Device& device, const Setup& setup);

  /// The squared distance of that ball from there behind the last step.
  double loss();
  /// Leaves the gradient in cue.grad().
  double loss_and_gradient();
  void step() { descent_.step(setup_.rate); }

  quern::Field<quern::Vec<Real, 2>> cue;  ///< place and velocity of the cue ball at the start

 private:
  using Vector = quern::Vec<Real, 2>;
  void forward();

  Setup setup_;
  quern::Field<Vector> start_, x_, v_;
  quern::Field<Vector> push_, shift_;  ///< of velocity and place by collisions
  quern::Field<Real, 0> loss_;
  quern::Kernel<void()> begin_, collide_, move_, measure_;
  GradientDescent<Vector, 1> descent_;
};

extern template class DiffBilliards<float>;
extern template class DiffBilliards<double>;

}  // namespace examples
