#pragma once
// Rigid bodies with springs between them learn to crawl over the ground, which they touch with friction.
//
// After `rigid_body` of Hu et al., "DiffTaichi: Differentiable Programming for Physical Simulation",
// ICLR 2020: a body on three feet, whose springs change their lengths. Each has its own sum of sine
// waves for that, in place of a neural network. Where a corner comes to the ground an impulse takes
// half of its speed, at the time of impact: a foot has two, and their impulses add up.
#include "examples/differentiable/descent.h"

namespace examples {

/// Real: float or double.
template <class Real>
class DiffWalker {
 public:
  struct Setup {
    int steps = 2047;    ///< of 1 ms
    double rate = 0.05;  ///< of Adam
  };
  DiffWalker(const quern::Device& device, const Setup& setup);

  /// How far the foremost foot is from (0.9, 0.15) behind the last step.
  double loss();
  /// Leaves the gradient in waves.grad().
  double loss_and_gradient();
  void step() { descent_.step(setup_.rate); }

  quern::Field<Real, 2> waves;  ///< amplitudes of ten waves for each spring, and a last constant

 private:
  using Vector = quern::Vec<Real, 2>;
  void forward();
  quern::Field<Vector> vectors(const quern::Device& device) const;
  quern::Field<Real> numbers(const quern::Device& device) const;

  Setup setup_;
  quern::Field<Vector> start_, half_, x_, v_;
  quern::Field<Real> angle_, spin_;
  quern::Field<Vector> gained_x_, gained_v_;  ///< by the impulses of a step
  quern::Field<Real> gained_angle_, gained_spin_;
  quern::Field<quern::Vec<int, 2>> ends_;  ///< of springs
  quern::Field<Vector> offset_;            ///< of a spring's end in the first of its bodies
  quern::Field<Real> action_;
  quern::Field<Real, 0> loss_;
  quern::Field<Real, 2> mean_, square_;
  quern::Kernel<void()> begin_;
  quern::Kernel<void(quern::lang::I32)> act_;
  quern::Kernel<void()> collide_, pull_, move_, measure_;
  Adam<Real, 2> descent_;
};

extern template class DiffWalker<float>;
extern template class DiffWalker<double>;

}  // namespace examples
