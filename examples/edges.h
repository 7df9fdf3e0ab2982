#pragma once
// Edges of a grey picture: Sobel's gradient, and Canny's detector on top of it.
#include <quern/quern.h>

#include <cstdint>

#include "examples/grids.h"

namespace examples {

using Grey = quern::Field<uint8_t, 2>;  ///< {height, width}, rows from the top

/// The length of the gradient by Sobel's 3 × 3 operators (Sobel & Feldman 1968), rounded and
/// saturated; beyond the border the picture continues as its last row or column.
quern::Kernel<void(Grey picture, Grey result)> sobel();

/// Canny, "A Computational Approach to Edge Detection", PAMI 1986: a Gaussian, Sobel's gradient,
/// suppression of what is not a maximum along the gradient, and hysteresis between two thresholds.
class Canny {
 public:
  struct Parameters {
    float sigma = 1.4f;          ///< of the Gaussian, in pixels
    float low = 40, high = 100;  ///< lengths of the gradient, in the units of sobel()
  };
  /// For pictures of the grid's shape. Throws quern::Error unless sigma > 0 and 0 <= low <= high.
  Canny(const Grid<2>& pixels, Parameters parameters, quern::Loc loc = quern::Loc::here());

  /// Edges become 255, everything else 0; a picture's outermost pixels are none. Yields the rounds
  /// in which weak edges grew.
  quern::Result<int> operator()(Grey picture, Grey edges) const { return detect_(picture, edges); }

 private:
  quern::Field<float, 2> rows_, smooth_, length_;
  Grey sector_, mark_, grown_;
  quern::Kernel<int(Grey, Grey)> detect_;
};

}  // namespace examples
