#pragma once
// A picture without its noise: near what was seen, and with little total variation.
//
// Rudin, Osher & Fatemi, "Nonlinear Total Variation Based Noise Removal Algorithms", Physica D 60,
// 1992, with the length of a gradient made smooth at 0.
#include "examples/differentiable/descent.h"

namespace examples {

/// Real: float or double.
template <class Real>
class DiffDenoise {
 public:
  struct Setup {
    double weight = 0.08;    ///< of total variation
    double softness = 0.02;  ///< gradients are as long as √(|g|² + softness²)
    /// Losses are convex, and their gradient varies at most that many times as fast as the picture.
    double steepness() const { return 1 + 8 * weight / softness; }
  };
  using Picture = quern::Field<Real, 2>;
  /// Begins with what was seen: values of about 0 to 1.
  DiffDenoise(const quern::Device& device, const Picture& seen, const Setup& setup);

  /// Half the squared distance from what was seen, and the weighted sum of lengths of gradients.
  double loss();
  /// Leaves the gradient in picture.grad().
  double loss_and_gradient();
  void step() { descent_.step(1 / setup_.steepness()); }

  Picture picture;

 private:
  Setup setup_;
  Picture seen_;
  quern::Kernel<Real()> measure_;
  decltype(quern::value_and_grad(measure_, quern::wrt(picture))) differentiate_;
  GradientDescent<Real, 2> descent_;
};

extern template class DiffDenoise<float>;
extern template class DiffDenoise<double>;

}  // namespace examples
