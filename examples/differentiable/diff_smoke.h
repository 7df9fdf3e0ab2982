#pragma once
// Which wind blows smoke into a picture?
//
// After `smoke_taichi` of Hu et al., "DiffTaichi: Differentiable Programming for Physical Simulation",
// ICLR 2020: incompressible flow in a square whose opposite sides are one, by semi-Lagrangian steps
// (Stam, "Stable Fluids", SIGGRAPH 1999) with a few of Jacobi's iterations for the pressure.
#include "examples/differentiable/descent.h"

namespace examples {

/// Real: float or double.
template <class Real>
class DiffSmoke {
 public:
  struct Setup {
    int side = 110;  ///< cells
    int steps = 100;
    int pressure = 6;   ///< Jacobi's iterations in a step, an even number
    double rate = 100;  ///< of gradient descent
  };
  /// Smoke in stripes; the target is a ring. Throws quern::Error for an odd number of iterations.
  DiffSmoke(const quern::Device& device, const Setup& setup, quern::Loc loc = quern::Loc::here());

  /// The mean of (smoke - target)² behind the last step.
  double loss();
  /// Leaves the gradient in wind.grad().
  double loss_and_gradient();
  void step() { descent_.step(setup_.rate); }

  using Scalars = quern::Field<Real, 2>;
  using Vectors = quern::Field<quern::Vec<Real, 2>, 2>;
  Vectors wind;  ///< at the start, in cells a step along both axes; a breeze
  Scalars start, target;
  /// Smoke behind the last step of the latest loss.
  const Scalars& reached() const { return setup_.steps % 2 == 0 ? even_ : odd_; }

 private:
  void forward();

  Setup setup_;
  Vectors flow_, carried_;
  Scalars even_, odd_;  ///< smoke behind steps with these numbers
  Scalars divergence_, pressure_, next_pressure_;
  quern::Field<Real, 0> loss_;
  quern::Kernel<void()> begin_, carry_flow_, diverge_;
  quern::Kernel<void(Scalars, Scalars)> relax_;
  quern::Kernel<void()> project_;
  quern::Kernel<void(Scalars, Scalars)> carry_;
  quern::Kernel<void(Scalars)> measure_;
  GradientDescent<quern::Vec<Real, 2>, 2> descent_;
};

extern template class DiffSmoke<float>;
extern template class DiffSmoke<double>;

}  // namespace examples
