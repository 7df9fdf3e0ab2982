#pragma once
// Where were the cameras, and what did they see? Both at once, from where points appear in pictures.
//
// Triggs, McLauchlan, Hartley & Fitzgibbon, "Bundle Adjustment: A Modern Synthesis", 2000. The method
// is Levenberg and Marquardt's. The matrix of its linear systems is never made: conjugate gradients
// ask for products with J, which jvp() computes, and with its transpose, which vjp() computes.
#include <quern/autodiff.h>

#include <vector>

namespace examples {

/// What is known of a scene, and where everything is. The units of length and of angles are free.
struct Scene {
  using Vector = quern::Vec<double, 3>;
  struct Sight {
    int camera, point;
    quern::Vec<double, 2> at;  ///< in the plane at a distance of 1
  };
  /// A camera turns by `turn`, an axis as long as the tangent of half the angle, then moves.
  std::vector<Vector> turns, moves, points;
  std::vector<Sight> sights;
  double noise = 0;  ///< standard deviation of each coordinate of a sight

  /// Cameras in an arc around points in a cube; each sees all of them.
  static Scene arc(int cameras, int points, double noise, unsigned seed);
  /// With everything but the sights displaced by so much along each axis.
  Scene displaced(double by, unsigned seed) const;
};

/// Real: float or double.
template <class Real>
class BundleAdjustment {
 public:
  using Vector = quern::Vec<Real, 3>;
  struct Setup {
    double damping = 1e-3;   ///< at first; what is added to the diagonal
    int most_products = 60;  ///< with the matrix, in a step
  };
  /// Begins where the scene says.
  BundleAdjustment(const quern::Device& device, const Scene& start, const Setup& setup);

  /// Half the sum of the squared distances between what is seen and what should be.
  double loss();
  /// Leaves the gradient in parameters.grad().
  double loss_and_gradient();
  /// To a lower loss, or with more damping to where it was.
  void step();

  quern::Field<Vector> parameters;  ///< turns and moves of the cameras, then points

 private:
  using Vectors = quern::Field<Vector>;
  using Residuals = quern::Field<quern::Vec<Real, 2>>;
  quern::Val<quern::Vec<Real, 2>> residual(int cameras, const quern::lang::I32& sight) const;
  /// Of (JᵀJ + damping) x = -gradient, which is in parameters.grad(): x goes to change_.
  void solve();

  Setup setup_;
  quern::Field<quern::Vec<int, 2>> which_;  ///< camera and point of a sight
  Residuals seen_, residual_;
  Vectors change_, rest_;
  quern::Kernel<double()> measure_;
  decltype(quern::value_and_grad(measure_, quern::wrt(parameters))) differentiate_;
  quern::Kernel<void()> project_;
  quern::Kernel<double()> begin_;
  quern::Kernel<void(quern::Val<Real>)> prepare_;
  quern::Kernel<double()> curvature_;
  quern::Kernel<double(quern::Val<Real>)> advance_;
  quern::Kernel<void(quern::Val<Real>)> turn_, move_;
  quern::Jvp<void()> push_;
  quern::Vjp<void()> pull_;
};

extern template class BundleAdjustment<float>;
extern template class BundleAdjustment<double>;

}  // namespace examples
