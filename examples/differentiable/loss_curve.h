#pragma once
// The picture of a loss over the iterations of an optimisation.
#include <quern/quern.h>

#include <cstdint>
#include <vector>

namespace examples {

/// Iterations to the right, losses upwards; on a logarithmic scale where they are positive and one is
/// ten times another. 480 × 320 pixels, rows from the top. Throws quern::Error for a loss that is not
/// finite, and where there are none.
quern::Field<quern::Vec<uint8_t, 3>, 2> loss_curve(const quern::Device& device,
                                                   const std::vector<double>& losses,
                                                   quern::Loc loc = quern::Loc::here());

}  // namespace examples
