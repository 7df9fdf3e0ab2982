#pragma once
// Which velocity throws an elastic square so that its centre lands on a target?
//
// The program `diffmpm` of Hu et al., "DiffTaichi: Differentiable Programming for Physical
// Simulation", ICLR 2020, in its size for benchmarks: MLS-MPM in two dimensions with corotated
// elasticity, explicit steps of 0.3 ms. The state is overwritten step by step; the tape keeps what
// going back needs of it.
#include "examples/differentiable/descent.h"

namespace examples {

/// Real: float or double.
template <class Real>
class DiffMpm {
 public:
  struct Setup {
    int side = 80;  ///< particles along a side of the square
    int steps = 1023;
    double rate = 10;  ///< of gradient descent
  };
  DiffMpm(const quern::Device& device, const Setup& setup);

  /// Half the squared distance of the centre from the target behind the last step.
  double loss();
  /// Leaves the gradient in velocity.grad().
  double loss_and_gradient();
  void step() { descent_.step(setup_.rate); }

  quern::Field<quern::Vec<Real, 2>> velocity;  ///< one: of all particles at the start; 0

 private:
  using Vector = quern::Vec<Real, 2>;
  using Matrix = quern::Mat<Real, 2, 2>;
  void forward();

  Setup setup_;
  quern::Field<Vector> x_, v_;
  quern::Field<Matrix> affine_, deformation_;
  quern::Field<Real, 2> mass_;
  quern::Field<Vector, 2> flow_;  ///< of the grid: momentum, then velocity
  quern::Field<Vector> centre_;
  quern::Field<Real, 0> loss_;
  quern::Kernel<void()> begin_, clear_, scatter_, push_, gather_, average_, measure_;
  GradientDescent<Vector, 1> descent_;
};

extern template class DiffMpm<float>;
extern template class DiffMpm<double>;

}  // namespace examples
