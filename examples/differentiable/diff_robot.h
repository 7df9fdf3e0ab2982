#pragma once
// A robot of masses and springs learns to walk.
//
// After `mass_spring` of Hu et al., "DiffTaichi: Differentiable Programming for Physical Simulation",
// ICLR 2020, its second robot: a small neural network sees waves of time, where the masses are and how
// they move, and sets the rest lengths of some springs. The ground holds what touches it; a mass that
// comes to it stops at the time of impact, within the step.
#include <vector>

#include "examples/differentiable/descent.h"

namespace examples {

/// Masses in a plane, y upwards, and springs between them.
struct Robot {
  struct Spring {
    int a, b;
    double length, actuation;  ///< at rest; the part of it that a controller may add or take
  };
  std::vector<quern::Vec<double, 2>> masses;  ///< the first one is the head
  std::vector<Spring> springs;
  static Robot two_legs();
};

/// Real: float or double.
template <class Real>
class DiffRobot {
 public:
  struct Setup {
    int steps = 682;     ///< of 4 ms
    double rate = 0.03;  ///< how far a step of the descent goes
    unsigned seed = 1;   ///< of the first weights
  };
  DiffRobot(const quern::Device& device, const Setup& setup);

  /// Minus how far to the right the head is behind the last step.
  double loss();
  /// Leaves the gradient in hidden_weights.grad() and spring_weights.grad().
  double loss_and_gradient();
  void step();

  /// A row for each of the 32 hidden neurons: of the inputs, then what is added.
  quern::Field<Real, 2> hidden_weights;
  /// A row for each spring, of the hidden neurons, likewise.
  quern::Field<Real, 2> spring_weights;

 private:
  using Vector = quern::Vec<Real, 2>;
  DiffRobot(const quern::Device& device, const Setup& setup, const Robot& robot);
  void forward();

  Setup setup_;
  quern::Field<Vector> start_, x_, v_, impulse_;
  quern::Field<quern::Vec<int, 2>> ends_;
  quern::Field<Real> length_, actuation_, hidden_, action_;
  quern::Field<Vector> centre_;
  quern::Field<Real, 0> loss_;
  quern::Kernel<void()> begin_, find_centre_;
  quern::Kernel<void(quern::lang::I32)> think_;
  quern::Kernel<void()> act_, pull_, move_, measure_;
  quern::Kernel<double()> squared_gradient_;
  GradientDescent<Real, 2> hidden_descent_, spring_descent_;
};

extern template class DiffRobot<float>;
extern template class DiffRobot<double>;

}  // namespace examples
