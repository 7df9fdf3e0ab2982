#pragma once
// The bilateral filter: smooths a picture but keeps its edges.
#include "examples/edges.h"

namespace examples {

/// Tomasi & Manduchi, "Bilateral Filtering for Gray and Color Images", ICCV 1998: the mean over
/// (2 · radius + 1)² pixels, weighted by Gaussians of the distance (in pixels) and of the
/// difference in grey. Rounded; beyond the border the picture continues as its last row or column.
/// Throws quern::Error unless the radius is 0 or more and both sigmas are positive.
quern::Kernel<void(Grey picture, Grey result)> bilateral(int radius, float sigma_distance,
                                                         float sigma_grey,
                                                         quern::Loc loc = quern::Loc::here());

}  // namespace examples
