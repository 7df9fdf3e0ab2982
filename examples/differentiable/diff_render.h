#pragma once
// What does a cloud look like inside, of which there are pictures from some sides?
//
// After `volume_renderer` of Hu et al., "DiffTaichi: Differentiable Programming for Physical
// Simulation", ICLR 2020: rays through a density on a grid, which absorbs, and scatters light that
// comes from the side of the camera and gets less with the way (Max, "Optical Models for Direct Volume
// Rendering", 1995).
#include "examples/differentiable/descent.h"

namespace examples {

/// Real: float or double.
template <class Real>
class DiffRender {
 public:
  struct Setup {
    int side = 48;      ///< of the grid
    int width = 96;     ///< pixels of a picture's side
    int views = 6;      ///< in half a turn about the vertical axis
    int samples = 96;   ///< of a ray
    double rate = 0.1;  ///< of Adam
  };
  using Volume = quern::Field<Real, 3>;
  using Pictures = quern::Field<Real, 3>;  ///< by view, row from the top, column
  /// The pictures are of a ring and a ball; the cloud is a thin haze at first.
  DiffRender(const quern::Device& device, const Setup& setup);

  /// The mean of (picture - target)².
  double loss();
  /// Leaves the gradient in cloud.grad().
  double loss_and_gradient();
  void step() { descent_.step(setup_.rate); }

  Volume cloud;  ///< roots of the density, by x, height and y, in a cube of side 2
  Pictures pictures, targets;

 private:
  void forward();

  Setup setup_;
  quern::Field<Real, 0> loss_;
  Volume mean_, square_;
  quern::Kernel<void()> begin_;
  quern::Kernel<void(Volume, Pictures)> render_;
  quern::Kernel<void()> measure_;
  Adam<Real, 3> descent_;
};

extern template class DiffRender<float>;
extern template class DiffRender<double>;

}  // namespace examples
